//! Tables, fields and keys (clause 1.3). A row is words, and text behind them; fields are the numbers of words.

use crate::tx::{Database, Kind, Table, TableSpec};

pub(super) const WAREHOUSE: Table = Table(0);
pub(super) const DISTRICT: Table = Table(1);
pub(super) const CUSTOMER: Table = Table(2);
pub(super) const HISTORY: Table = Table(3);
pub(super) const NEW_ORDER: Table = Table(4);
pub(super) const ORDER: Table = Table(5);
pub(super) const ORDER_LINE: Table = Table(6);
pub(super) const ITEM: Table = Table(7);
pub(super) const STOCK: Table = Table(8);

const fn spec(name: &'static str, words: usize, text: usize, more_indices: usize, kind: Kind) -> TableSpec {
    TableSpec { name, bytes: words * 8 + text, more_indices, kind }
}

/// All nine.
pub const TABLES: &[TableSpec] = &[
    spec("warehouse", 2, ADDRESS, 0, Kind::Rows),
    spec("district", 3, ADDRESS, 0, Kind::Rows),
    // By last name, too.
    spec("customer", 7, customer::TEXT, 1, Kind::Rows),
    spec("history", 7, 24, 0, Kind::Journal),
    spec("new-order", 0, 0, 0, Kind::Rows),
    // By customer, too.
    spec("order", 5, 0, 1, Kind::Rows),
    spec("order-line", 5, 24, 0, Kind::Rows),
    spec("item", 2, 74, 0, Kind::Fixed),
    spec("stock", 4, 290, 0, Kind::Rows),
];

/// Name, two streets, city, state and zip.
pub(super) const ADDRESS: usize = 10 + 20 + 20 + 20 + 2 + 9;
pub(super) const DISTRICTS: u64 = 10;
/// What an order was taken for that is still to be delivered; and a date that is not there.
pub(super) const NONE: u64 = 0;

pub(super) mod warehouse {
    pub(crate) const TAX: usize = 0;
    pub(crate) const YTD: usize = 1;
}

pub(super) mod district {
    pub(crate) const TAX: usize = 0;
    pub(crate) const YTD: usize = 1;
    pub(crate) const NEXT_ORDER: usize = 2;
}

pub(super) mod customer {
    pub(crate) const CREDIT_LIMIT: usize = 0;
    pub(crate) const DISCOUNT: usize = 1;
    /// May be negative: as an `i64`.
    pub(crate) const BALANCE: usize = 2;
    pub(crate) const YTD_PAYMENT: usize = 3;
    pub(crate) const PAYMENTS: usize = 4;
    pub(crate) const DELIVERIES: usize = 5;
    pub(crate) const SINCE: usize = 6;
    /// Bytes of text: credit, first, middle and last name, address without a name, phone, data.
    pub(crate) const TEXT: usize = 2 + 16 + 2 + 16 + 71 + 16 + 500;
    /// Where credit and data are in the row.
    pub(crate) const CREDIT: std::ops::Range<usize> = 56..58;
    pub(crate) const DATA: std::ops::Range<usize> = 56 + TEXT - 500..56 + TEXT;
}

pub(super) mod history {
    pub(crate) const CUSTOMER: usize = 0;
    pub(crate) const CUSTOMER_DISTRICT: usize = 1;
    pub(crate) const CUSTOMER_WAREHOUSE: usize = 2;
    pub(crate) const DISTRICT: usize = 3;
    pub(crate) const AMOUNT: usize = 6;
}

pub(super) mod order {
    pub(crate) const CUSTOMER: usize = 0;
    pub(crate) const CARRIER: usize = 2;
    pub(crate) const LINES: usize = 3;
}

pub(super) mod line {
    pub(crate) const ITEM: usize = 0;
    pub(crate) const DELIVERY: usize = 2;
    pub(crate) const AMOUNT: usize = 4;
}

pub(super) mod item {
    pub(crate) const PRICE: usize = 1;
}

pub(super) mod stock {
    pub(crate) const QUANTITY: usize = 0;
    pub(crate) const YTD: usize = 1;
    pub(crate) const ORDERS: usize = 2;
    pub(crate) const REMOTE: usize = 3;
    /// What goes to an order's line, for a district from 1 on.
    pub(crate) const fn district(district: u64) -> std::ops::Range<usize> {
        let at = 32 + (district as usize - 1) * 24;
        at..at + 24
    }
}

/// A warehouse's part of all keys: warehouses are numbered from 1.
const fn at(warehouse: u64) -> u128 {
    (warehouse as u128 - 1) << 112
}

pub(super) const fn of_warehouse(warehouse: u64) -> u128 {
    at(warehouse)
}

pub(super) const fn of_district(warehouse: u64, district: u64) -> u128 {
    at(warehouse) | district as u128
}

/// Of a customer, an order, or a new order.
pub(super) const fn in_district(warehouse: u64, district: u64, number: u64) -> u128 {
    at(warehouse) | (district as u128) << 32 | number as u128
}

pub(super) const fn of_line(warehouse: u64, district: u64, order: u64, line: u64) -> u128 {
    at(warehouse) | (district as u128) << 48 | (order as u128) << 8 | line as u128
}

/// Of an item, or of its stock.
pub(super) const fn of_item(warehouse: u64, item: u64) -> u128 {
    at(warehouse) | item as u128
}

/// Of an order by its customer: the newest comes first.
pub(super) const fn by_customer(warehouse: u64, district: u64, customer: u64, order: u64) -> u128 {
    at(warehouse) | (district as u128) << 64 | (customer as u128) << 32 | (!(order as u32)) as u128
}

/// Of a customer by last name, then by first name.
pub(super) fn by_name(warehouse: u64, district: u64, last: u64, first: &[u8], customer: u64) -> u128 {
    let first = first.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first));
    at(warehouse)
        | u128::from(district) << 104
        | u128::from(last) << 88
        | u128::from(first) << 24
        | u128::from(customer)
}

/// Of something that was paid: which client's, and which of its payments.
pub(super) const fn of_payment(warehouse: u64, client: u64, number: u64) -> u128 {
    at(warehouse) | (client as u128) << 64 | number as u128
}

/// How many rows there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u64,
    /// A warehouse has so many times fewer rows than specified: 1 is the specification.
    pub shrink: u64,
}

impl Scale {
    /// The most times that rows can be fewer.
    pub const MOST: u64 = 300;

    /// Customers of each district, and orders at first.
    pub const fn customers(&self) -> u64 {
        3000 / self.shrink
    }

    /// Items.
    pub const fn items(&self) -> u64 {
        100_000 / self.shrink
    }

    /// Orders of a district that are not delivered at first.
    pub(super) const fn new_orders(&self) -> u64 {
        self.customers() * 3 / 10
    }

    /// Rows of each table at first, and after so many more new orders and payments in each warehouse.
    fn rows(&self, more: u64) -> [u64; 9] {
        let (w, d) = (self.warehouses, self.warehouses * DISTRICTS);
        let (customers, orders) = (d * self.customers(), d * self.customers() + w * more);
        // An order has five to fifteen lines, ten on average.
        let lines = d * self.customers() * 11 + w * more * 11;
        [w, d, customers, customers + w * more, orders, orders, lines, self.items(), w * self.items()]
    }

    /// Rows at first, about as many as there will be.
    pub fn first_rows(&self) -> u64 {
        let lines = self.warehouses * DISTRICTS * self.customers() * 10;
        let [w, d, customers, history, _, orders, _, items, stock] = self.rows(0);
        let new_orders = self.warehouses * DISTRICTS * self.new_orders();
        w + d + customers + history + new_orders + orders + lines + items + stock
    }

    /// Bytes of all nodes' memory for a database that runs for so many transactions of each warehouse.
    pub fn bytes_needed(&self, transactions: u64, block: u64, log_bytes: u64) -> u64 {
        let rows = self.rows(transactions / 2 + 1);
        let tables: u64 =
            TABLES.iter().zip(rows).map(|(spec, rows)| Database::bytes_needed(spec, rows, block)).sum();
        // A started page of each table for each client, and roots, ends and logs of each warehouse.
        let pages = TABLES.iter().map(|spec| block.max(spec.bytes as u64 + 2 * block)).sum::<u64>();
        let trees = (TABLES.len() as u64 + 4) * 2 * block;
        tables + self.warehouses * (2 * pages + trees + log_bytes.max(2 * block)) + 4 * block
    }
}
