//! Deliveries (clause 2.7): the oldest new order of each district, in one transaction.

use super::draw::Draw;
use super::schema::{
    CUSTOMER, DISTRICTS, NEW_ORDER, ORDER, ORDER_LINE, customer, in_district, line, of_line, order,
};
use super::worker::{Home, there};
use crate::tx::{Client, Error, Locking};

/// What a terminal asks for.
pub(super) struct Delivery {
    carrier: u64,
}

impl Delivery {
    pub(super) fn draw(draw: &mut Draw, _: &Home) -> Self {
        Self { carrier: draw.number(1, 10) }
    }

    pub(super) async fn run<L, M: Locking<L>>(
        &self,
        client: &mut Client<L>,
        mem: &mut M,
        home: u64,
    ) -> Result<(), Error> {
        let delivered = mem.now().0.max(1);
        for district in 1..=DISTRICTS {
            let range = (in_district(home, district, 0), in_district(home, district, u64::from(u32::MAX)));
            let oldest = client.scan_to_change(mem, (NEW_ORDER, 0), range, 1).await?;
            let Some(oldest) = oldest.first() else { continue };
            client.delete(mem, oldest, &[]).await?;

            let mut order = there(client.get_to_change(mem, ORDER, oldest.key()).await?);
            order.set_word(order::CARRIER, self.carrier);
            client.put(mem, &mut order).await?;
            let number = oldest.key() as u64 & 0xffff_ffff;
            let lines = |line| of_line(home, district, number, line);
            let range = (lines(0), lines(0xff));
            let mut amount = 0;
            for mut line in client.scan_to_change(mem, (ORDER_LINE, 0), range, usize::MAX).await? {
                amount += line.word(line::AMOUNT);
                line.set_word(line::DELIVERY, delivered);
                client.put(mem, &mut line).await?;
            }
            let key = in_district(home, district, order.word(order::CUSTOMER));
            let mut customer = there(client.get_to_change(mem, CUSTOMER, key).await?);
            let balance = customer.word(customer::BALANCE).wrapping_add(amount);
            customer.set_word(customer::BALANCE, balance);
            customer.set_word(customer::DELIVERIES, customer.word(customer::DELIVERIES) + 1);
            client.put(mem, &mut customer).await?;
        }
        Ok(())
    }
}
