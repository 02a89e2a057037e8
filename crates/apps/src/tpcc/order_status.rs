//! Order status (clause 2.6): a customer's last order and its lines. Only reads.

use super::draw::Draw;
use super::payment::{Purpose, Who};
use super::schema::{CUSTOMER, ORDER, ORDER_LINE, by_customer, of_line};
use super::worker::{Home, there};
use crate::tx::{Client, Error, Locking};

/// What a terminal asks for.
pub(super) struct OrderStatus {
    district: u64,
    who: Who,
}

impl OrderStatus {
    pub(super) fn draw(draw: &mut Draw, _: &Home) -> Self {
        Self { district: draw.district(), who: Who::draw(draw) }
    }

    pub(super) async fn run<L, M: Locking<L>>(
        &self,
        client: &mut Client<L>,
        mem: &mut M,
        home: u64,
    ) -> Result<(), Error> {
        let key = self.who.find(client, mem, (home, self.district), Purpose::ToRead).await?;
        there(client.get(mem, CUSTOMER, key).await?);
        let customer = key as u64 & 0xffff_ffff;
        let orders = |order| by_customer(home, self.district, customer, order);
        let range = (orders(u64::from(u32::MAX)), orders(0));
        let last = client.scan(mem, (ORDER, 1), range, 1).await?;
        if let Some(last) = last.first() {
            let order = last.key() as u64 & 0xffff_ffff;
            let line = |line| of_line(home, self.district, order, line);
            client.scan(mem, (ORDER_LINE, 0), (line(0), line(0xff)), usize::MAX).await?;
        }
        Ok(())
    }
}
