//! The first population (clause 4.3.3.1): a warehouse is loaded by the one who has it. Items are loaded with the first one.
//!
//! What must always hold: the twelve conditions, when it is done.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rackmem::Memory;

use super::draw::{Draw, last_name};
use super::schema::{
    ADDRESS, CUSTOMER, DISTRICT, DISTRICTS, HISTORY, ITEM, NEW_ORDER, NONE, ORDER, ORDER_LINE, STOCK, Scale,
    TABLES, WAREHOUSE, by_customer, by_name, customer, in_district, item, of_district, of_item, of_line,
    of_payment, of_warehouse, stock,
};
use crate::tx::{Client, Error, Table};

/// The client whose payments are those of the first population.
const LOADER: u64 = 0xffff;

/// A row: words, and text behind them.
pub(super) fn row(table: Table, words: &[u64]) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(TABLES[usize::from(table.0)].bytes, 0);
    bytes
}

struct Loader<'a, L, M> {
    client: &'a mut Client<L>,
    mem: &'a mut M,
    draw: Draw,
    scale: Scale,
    warehouse: u64,
    rows: &'a AtomicU64,
}

/// Loads a warehouse, and counts the rows for other threads.
///
/// # Errors
/// If the rack's memory fails or is full.
pub async fn load<L, M: Memory>(
    client: &mut Client<L>,
    mem: &mut M,
    (scale, warehouse): (Scale, u64),
    seed: u64,
    rows: &AtomicU64,
) -> Result<(), Error> {
    let draw = Draw::new(random::mix(seed ^ warehouse << 32), scale);
    let mut loader = Loader { client, mem, draw, scale, warehouse, rows };
    if warehouse == 1 {
        loader.items().await?;
    }
    loader.warehouse_and_stock().await?;
    for district in 1..=DISTRICTS {
        loader.district(district).await?;
        loader.customers(district).await?;
        loader.orders(district).await?;
    }
    Ok(())
}

impl<L, M: Memory> Loader<'_, L, M> {
    async fn add(&mut self, table: Table, key: u128, more_keys: &[u128], bytes: &[u8]) -> Result<(), Error> {
        self.client.load(self.mem, (table, key), more_keys, bytes).await?;
        self.rows.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn items(&mut self) -> Result<(), Error> {
        for number in 1..=self.scale.items() {
            let mut words = [self.draw.number(1, 10_000), 0];
            words[item::PRICE] = self.draw.number(100, 10_000);
            let mut bytes = row(ITEM, &words);
            self.draw.text(&mut bytes[16..40], 14);
            self.draw.data(&mut bytes[40..], 26);
            self.add(ITEM, of_item(1, number), &[], &bytes).await?;
        }
        Ok(())
    }

    async fn warehouse_and_stock(&mut self) -> Result<(), Error> {
        let tax = self.draw.number(0, 2000);
        let mut bytes = row(WAREHOUSE, &[tax, DISTRICTS * self.scale.customers() * 1000]);
        self.address(&mut bytes[16..]);
        self.add(WAREHOUSE, of_warehouse(self.warehouse), &[], &bytes).await?;
        for number in 1..=self.scale.items() {
            let mut bytes = row(STOCK, &[self.draw.number(10, 100)]);
            for district in 1..=DISTRICTS {
                self.draw.text(&mut bytes[stock::district(district)], 24);
            }
            let data = bytes.len() - 50;
            self.draw.data(&mut bytes[data..], 26);
            self.add(STOCK, of_item(self.warehouse, number), &[], &bytes).await?;
        }
        Ok(())
    }

    async fn district(&mut self, district: u64) -> Result<(), Error> {
        let customers = self.scale.customers();
        let words = [self.draw.number(0, 2000), customers * 1000, customers + 1];
        let mut bytes = row(DISTRICT, &words);
        self.address(&mut bytes[24..24 + ADDRESS]);
        self.add(DISTRICT, of_district(self.warehouse, district), &[], &bytes).await
    }

    async fn customers(&mut self, district: u64) -> Result<(), Error> {
        let (warehouse, since) = (self.warehouse, self.mem.now().0.max(1));
        for number in 1..=self.scale.customers() {
            let mut words = [0; 7];
            words[customer::CREDIT_LIMIT] = 5_000_000;
            words[customer::DISCOUNT] = self.draw.number(0, 5000);
            words[customer::BALANCE] = -1000_i64 as u64;
            words[customer::YTD_PAYMENT] = 1000;
            words[customer::PAYMENTS] = 1;
            words[customer::SINCE] = since;
            let mut bytes = row(CUSTOMER, &words);
            let credit = if self.draw.percent(10) { b"BC" } else { b"GC" };
            bytes[customer::CREDIT].copy_from_slice(credit);
            let last = self.draw.last_of(number);
            let name = last_name(last);
            let text = &mut bytes[58..];
            self.draw.text(&mut text[..16], 8);
            text[16..18].copy_from_slice(b"OE");
            text[18..18 + name.len()].copy_from_slice(name.as_bytes());
            self.draw.text(&mut text[34..34 + 71 + 16], 60);
            self.draw.text(&mut bytes[customer::DATA], 300);
            let by_name = by_name(warehouse, district, last, &bytes[58..74], number);
            self.add(CUSTOMER, in_district(warehouse, district, number), &[by_name], &bytes).await?;

            let mut bytes = row(HISTORY, &[number, district, warehouse, district, warehouse, since, 1000]);
            self.draw.text(&mut bytes[56..], 12);
            let paid = district << 32 | number;
            self.add(HISTORY, of_payment(warehouse, LOADER, paid), &[], &bytes).await?;
        }
        Ok(())
    }

    async fn orders(&mut self, district: u64) -> Result<(), Error> {
        let (warehouse, orders) = (self.warehouse, self.scale.customers());
        let entered = self.mem.now().0.max(1);
        for (number, customer) in (1..).zip(self.draw.permutation(orders)) {
            let delivered = number <= orders - self.scale.new_orders();
            let carrier = if delivered { self.draw.number(1, 10) } else { NONE };
            let lines = self.draw.number(5, 15);
            let key = in_district(warehouse, district, number);
            let by_customer = by_customer(warehouse, district, customer, number);
            let bytes = row(ORDER, &[customer, entered, carrier, lines, 1]);
            self.add(ORDER, key, &[by_customer], &bytes).await?;
            if !delivered {
                self.add(NEW_ORDER, key, &[], &[]).await?;
            }
            for line in 1..=lines {
                let (date, amount) =
                    if delivered { (entered, 0) } else { (NONE, self.draw.number(1, 999_999)) };
                let item = self.draw.number(1, self.scale.items());
                let mut bytes = row(ORDER_LINE, &[item, warehouse, date, 5, amount]);
                self.draw.text(&mut bytes[40..], 24);
                self.add(ORDER_LINE, of_line(warehouse, district, number, line), &[], &bytes).await?;
            }
        }
        Ok(())
    }

    fn address(&mut self, into: &mut [u8]) {
        self.draw.text(&mut into[..ADDRESS - 9], 32);
        self.draw.text(&mut into[ADDRESS - 9..ADDRESS - 5], 4);
        into[ADDRESS - 5..ADDRESS].copy_from_slice(b"11111");
    }
}
