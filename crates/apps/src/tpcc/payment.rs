//! Payments (clause 2.5), and customers who are found by name or by number (also clause 2.6).

use super::draw::Draw;
use super::load::row;
use super::schema::{
    CUSTOMER, DISTRICT, HISTORY, WAREHOUSE, by_name, customer, district, in_district, of_district,
    of_payment, of_warehouse, warehouse,
};
use super::worker::{Home, there};
use crate::tx::{Client, Error, Locking};

/// Who is meant.
#[derive(Clone, Copy)]
pub(super) enum Who {
    Number(u64),
    /// The one in the middle, by first name, of those with this last name.
    LastName(u64),
}

impl Who {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        if draw.percent(60) { Self::LastName(draw.last_to_find()) } else { Self::Number(draw.customer()) }
    }

    /// His key.
    pub(super) async fn find<L, M: Locking<L>>(
        self,
        client: &mut Client<L>,
        mem: &mut M,
        (warehouse, district): (u64, u64),
        purpose: Purpose,
    ) -> Result<u128, Error> {
        match self {
            Self::Number(number) => Ok(in_district(warehouse, district, number)),
            Self::LastName(last) => {
                let from = by_name(warehouse, district, last, &[0; 8], 0);
                let until = by_name(warehouse, district, last, &[0xff; 8], 0xff_ffff);
                let found = match purpose {
                    Purpose::ToRead => client.scan(mem, (CUSTOMER, 1), (from, until), usize::MAX).await?,
                    Purpose::ToChange => {
                        client.scan_to_change(mem, (CUSTOMER, 1), (from, until), usize::MAX).await?
                    }
                };
                // Each name was loaded at least once.
                Ok(found[found.len().div_ceil(2) - 1].key())
            }
        }
    }
}

/// What a customer is looked for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    ToRead,
    /// All of the name are locked to be changed at once: two that had them to read would be in each other's way.
    ToChange,
}

/// What a terminal asks for.
pub(super) struct Payment {
    district: u64,
    customer: (u64, u64),
    who: Who,
    amount: u64,
    /// The number of the payment at this client.
    number: u64,
}

impl Payment {
    pub(super) fn draw(draw: &mut Draw, home: &Home, number: u64) -> Self {
        let district = draw.district();
        let warehouse = home.other_or_own(draw);
        let customer = if warehouse == home.warehouse { district } else { draw.district() };
        let who = Who::draw(draw);
        Self { district, customer: (warehouse, customer), who, amount: draw.number(100, 500_000), number }
    }

    pub(super) async fn run<L, M: Locking<L>>(
        &self,
        client: &mut Client<L>,
        mem: &mut M,
        (home, id): (u64, u64),
    ) -> Result<(), Error> {
        let amount = self.amount;
        let mut warehouse = there(client.get_to_change(mem, WAREHOUSE, of_warehouse(home)).await?);
        warehouse.set_word(warehouse::YTD, warehouse.word(warehouse::YTD) + amount);
        client.put(mem, &mut warehouse).await?;
        let key = of_district(home, self.district);
        let mut district = there(client.get_to_change(mem, DISTRICT, key).await?);
        district.set_word(district::YTD, district.word(district::YTD) + amount);
        client.put(mem, &mut district).await?;

        let key = self.who.find(client, mem, self.customer, Purpose::ToChange).await?;
        let mut customer = there(client.get_to_change(mem, CUSTOMER, key).await?);
        let number = key as u64 & 0xffff_ffff;
        let balance = customer.word(customer::BALANCE).wrapping_sub(amount);
        customer.set_word(customer::BALANCE, balance);
        customer.set_word(customer::YTD_PAYMENT, customer.word(customer::YTD_PAYMENT) + amount);
        customer.set_word(customer::PAYMENTS, customer.word(customer::PAYMENTS) + 1);
        if customer.bytes[customer::CREDIT] == *b"BC" {
            let note = format!(
                "{number} {} {} {} {home} {amount}|",
                self.customer.1, self.customer.0, self.district
            );
            let data = &mut customer.bytes[customer::DATA];
            data.copy_within(..data.len() - note.len(), note.len());
            data[..note.len()].copy_from_slice(note.as_bytes());
        }
        client.put(mem, &mut customer).await?;

        let paid = mem.now().0.max(1);
        let mut bytes =
            row(HISTORY, &[number, self.customer.1, self.customer.0, self.district, home, paid, amount]);
        // The names of warehouse and district, as far as there is room.
        bytes[56..66].copy_from_slice(&warehouse.bytes[16..26]);
        bytes[70..80].copy_from_slice(&district.bytes[24..34]);
        client.insert(mem, (HISTORY, of_payment(home, id, self.number)), &[], &bytes).await
    }
}
