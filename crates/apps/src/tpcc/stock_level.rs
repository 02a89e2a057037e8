//! Stock level (clause 2.8): how many items of a district's last twenty orders are nearly sold out. Only reads.

use std::collections::BTreeSet;

use super::draw::Draw;
use super::schema::{DISTRICT, ORDER_LINE, STOCK, district, line, of_district, of_item, of_line, stock};
use super::worker::{Home, there};
use crate::tx::{Client, Error, Locking};

/// Orders that are looked at.
const ORDERS: u64 = 20;

/// What a terminal asks for.
pub(super) struct StockLevel {
    district: u64,
    threshold: u64,
}

impl StockLevel {
    /// Each thread stands for one terminal of each district.
    pub(super) fn draw(draw: &mut Draw, _: &Home) -> Self {
        Self { district: draw.district(), threshold: draw.number(10, 20) }
    }

    /// Gives how many.
    pub(super) async fn run<L, M: Locking<L>>(
        &self,
        client: &mut Client<L>,
        mem: &mut M,
        home: u64,
    ) -> Result<u64, Error> {
        let district = there(client.get(mem, DISTRICT, of_district(home, self.district)).await?);
        let next = district.word(district::NEXT_ORDER);
        let from = of_line(home, self.district, next.saturating_sub(ORDERS), 0);
        let until = of_line(home, self.district, next - 1, 0xff);
        let lines = client.scan(mem, (ORDER_LINE, 0), (from, until), usize::MAX).await?;
        let items: BTreeSet<u64> = lines.iter().map(|row| row.word(line::ITEM)).collect();
        let mut low = 0;
        for item in items {
            let stock = there(client.get(mem, STOCK, of_item(home, item)).await?);
            low += u64::from(stock.word(stock::QUANTITY) < self.threshold);
        }
        Ok(low)
    }
}
