//! The consistency conditions (clause 3.3.2), of a database in which no transaction runs.

use std::collections::BTreeMap;
use std::fmt;

use rackmem::Memory;

use super::schema::{
    CUSTOMER, DISTRICT, HISTORY, NEW_ORDER, NONE, ORDER, ORDER_LINE, Scale, WAREHOUSE, customer, district,
    history, line, of_warehouse, order, warehouse,
};
use crate::tx::{Database, Error, Row};

/// A condition that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its number, from 1 to 12.
    pub condition: u8,
    /// Where.
    pub warehouse: u64,
    /// And in which district; 0 if it is about all.
    pub district: u64,
    /// What was found on both sides.
    pub sides: [i64; 2],
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { condition, warehouse, district, sides: [left, right] } = self;
        write!(
            f,
            "consistency condition 3.3.2.{condition} does not hold in warehouse {warehouse}, district {district}: {left} is not {right}"
        )
    }
}

/// What is known of an order.
#[derive(Clone, Copy, Default)]
struct Known {
    customer: u64,
    carrier: u64,
    lines: u64,
    /// Of its lines: how many, how many of them were delivered, and cents of those.
    found: u64,
    delivered: u64,
    cents: u64,
    is_new: bool,
}

/// What is known of a district.
#[derive(Default)]
struct InDistrict {
    next: u64,
    ytd: u64,
    paid: u64,
    orders: BTreeMap<u64, Known>,
}

/// District and number in a key of a customer or an order.
fn place(row: &Row) -> (u64, u64) {
    (row.key() as u64 >> 32 & 0xffff, row.key() as u64 & 0xffff_ffff)
}

/// What was paid, and by whom: warehouse, district and customer.
#[derive(Default)]
struct Paid {
    to: BTreeMap<(u64, u64), u64>,
    by: BTreeMap<(u64, u64, u64), u64>,
}

/// Looks at all warehouses. `is_first` says that nothing has run since they were loaded: one condition is about that.
///
/// # Errors
/// If the rack's memory fails.
pub async fn check<M: Memory>(
    mem: &mut M,
    database: &Database,
    scale: Scale,
    is_first: bool,
) -> Result<Result<(), Broken>, Error> {
    let mut paid = Paid::default();
    for warehouse in 1..=scale.warehouses {
        for row in database.rows(mem, HISTORY, of_warehouse(warehouse)).await? {
            let [amount, to, customer, district, home] = [
                history::AMOUNT,
                history::DISTRICT,
                history::CUSTOMER,
                history::CUSTOMER_DISTRICT,
                history::CUSTOMER_WAREHOUSE,
            ]
            .map(|field| row.word(field));
            *paid.to.entry((warehouse, to)).or_default() += amount;
            *paid.by.entry((home, district, customer)).or_default() += amount;
        }
    }
    for warehouse in 1..=scale.warehouses {
        let conditions = of_one(mem, database, warehouse, (&paid, scale, is_first)).await?;
        let broken = conditions.into_iter().find(|(_, _, [left, right])| left != right);
        if let Some((condition, district, sides)) = broken {
            let sides = sides.map(|side| side as i64);
            return Ok(Err(Broken { condition, warehouse, district, sides }));
        }
    }
    Ok(Ok(()))
}

/// The conditions of a warehouse: number, district, and both sides, which have to be the same.
async fn of_one<M: Memory>(
    mem: &mut M,
    database: &Database,
    warehouse: u64,
    (paid, scale, is_first): (&Paid, Scale, bool),
) -> Result<Vec<(u8, u64, [u64; 2])>, Error> {
    let at = of_warehouse(warehouse);
    let mut districts: BTreeMap<u64, InDistrict> = BTreeMap::new();
    for row in database.rows(mem, DISTRICT, at).await? {
        let number = row.key() as u64 & 0xff;
        let it = districts.entry(number).or_default();
        (it.ytd, it.next) = (row.word(district::YTD), row.word(district::NEXT_ORDER));
        it.paid = paid.to.get(&(warehouse, number)).copied().unwrap_or_default();
    }
    for row in database.rows(mem, ORDER, at).await? {
        let (district, number) = place(&row);
        let it = districts.entry(district).or_default().orders.entry(number).or_default();
        (it.customer, it.carrier) = (row.word(order::CUSTOMER), row.word(order::CARRIER));
        it.lines = row.word(order::LINES);
    }
    for row in database.rows(mem, NEW_ORDER, at).await? {
        let (district, number) = place(&row);
        districts.entry(district).or_default().orders.entry(number).or_default().is_new = true;
    }
    for row in database.rows(mem, ORDER_LINE, at).await? {
        let (district, number) = (row.key() as u64 >> 48, row.key() as u64 >> 8 & 0xffff_ffff);
        let it = districts.entry(district).or_default().orders.entry(number).or_default();
        it.found += 1;
        if row.word(line::DELIVERY) != NONE {
            it.delivered += 1;
            it.cents += row.word(line::AMOUNT);
        }
    }
    let mut cents_of: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (district, it) in &districts {
        for known in it.orders.values() {
            *cents_of.entry((*district, known.customer)).or_default() += known.cents;
        }
    }
    let ytd = database.rows(mem, WAREHOUSE, at).await?[0].word(warehouse::YTD);
    let sum = |of: fn(&InDistrict) -> u64| districts.values().map(of).sum::<u64>();
    let mut conditions = vec![(1, 0, [ytd, sum(|it| it.ytd)]), (8, 0, [ytd, sum(|it| it.paid)])];
    for (district, it) in &districts {
        let of_it = of_district(it, (scale, is_first));
        conditions.extend(of_it.into_iter().map(|(number, sides)| (number, *district, sides)));
    }
    for row in &database.rows(mem, CUSTOMER, at).await? {
        let who = place(row);
        let (balance, ytd) = (row.word(customer::BALANCE), row.word(customer::YTD_PAYMENT));
        let cents = cents_of.get(&who).copied().unwrap_or_default();
        let paid = paid.by.get(&(warehouse, who.0, who.1)).copied().unwrap_or_default();
        conditions.push((10, who.0, [balance, cents.wrapping_sub(paid)]));
        conditions.push((12, who.0, [balance.wrapping_add(ytd), cents]));
    }
    Ok(conditions)
}

/// The conditions of a district.
fn of_district(it: &InDistrict, (scale, is_first): (Scale, bool)) -> Vec<(u8, [u64; 2])> {
    let new: Vec<u64> =
        it.orders.iter().filter(|(_, known)| known.is_new).map(|(number, _)| *number).collect();
    let mut conditions = vec![(9, [it.ytd, it.paid])];
    let last = it.orders.keys().last().copied().unwrap_or_default();
    conditions.push((2, [it.next.wrapping_sub(1), last]));
    if let (Some(oldest), Some(newest)) = (new.first(), new.last()) {
        conditions.push((2, [it.next.wrapping_sub(1), *newest]));
        conditions.push((3, [newest - oldest + 1, new.len() as u64]));
    }
    let sum = |of: fn(&Known) -> u64| it.orders.values().map(of).sum::<u64>();
    conditions.push((4, [sum(|known| known.lines), sum(|known| known.found)]));
    for known in it.orders.values() {
        let is_open = known.carrier == NONE;
        conditions.push((5, [is_open.into(), known.is_new.into()]));
        conditions.push((6, [known.lines, known.found]));
        conditions.push((7, [if is_open { 0 } else { known.found }, known.delivered]));
    }
    if is_first {
        // 2100 where there are 3000 customers.
        let delivered = scale.customers() - scale.new_orders();
        conditions.push((11, [it.orders.len() as u64 - new.len() as u64, delivered]));
    }
    conditions
}
