//! New orders (clause 2.4).

use super::draw::Draw;
use super::load::row;
use super::schema::{
    CUSTOMER, DISTRICT, ITEM, NEW_ORDER, NONE, ORDER, ORDER_LINE, STOCK, WAREHOUSE, by_customer, customer,
    district, in_district, item, of_district, of_item, of_line, of_warehouse, stock, warehouse,
};
use super::worker::{Home, there};
use crate::tx::{Client, Error, Locking};

/// What is ordered: an item, the warehouse that has it, and how many.
type Line = (u64, u64, u64);

/// What a terminal asks for.
pub(super) struct NewOrder {
    district: u64,
    customer: u64,
    lines: Vec<Line>,
}

impl NewOrder {
    pub(super) fn draw(draw: &mut Draw, home: &Home) -> Self {
        let (district, customer) = (draw.district(), draw.customer());
        let (count, is_wrong) = (draw.number(5, 15), draw.percent(1));
        let mut lines: Vec<Line> = Vec::new();
        while lines.len() < count as usize {
            let item = draw.item();
            if lines.iter().all(|(known, ..)| *known != item) {
                lines.push((item, home.other_or_own(draw), draw.number(1, 10)));
            }
        }
        if is_wrong {
            // An item that nobody has, to be found out last.
            lines[count as usize - 1].0 = u64::from(u32::MAX);
        }
        Self { district, customer, lines }
    }

    /// Gives the hundredths of cents to be paid. None if it has an item that nobody has: then it is to be undone.
    pub(super) async fn run<L, M: Locking<L>>(
        &self,
        client: &mut Client<L>,
        mem: &mut M,
        home: u64,
    ) -> Result<Option<u64>, Error> {
        let Self { district: d, customer, lines } = self;
        let entered = mem.now().0.max(1);
        let warehouse = there(client.get(mem, WAREHOUSE, of_warehouse(home)).await?);
        let mut district = there(client.get_to_change(mem, DISTRICT, of_district(home, *d)).await?);
        let number = district.word(district::NEXT_ORDER);
        district.set_word(district::NEXT_ORDER, number + 1);
        client.put(mem, &mut district).await?;
        let buyer = there(client.get(mem, CUSTOMER, in_district(home, *d, *customer)).await?);

        let is_local = lines.iter().all(|(_, supply, _)| *supply == home);
        let order = row(ORDER, &[*customer, entered, NONE, lines.len() as u64, is_local.into()]);
        let key = in_district(home, *d, number);
        client.insert(mem, (ORDER, key), &[by_customer(home, *d, *customer, number)], &order).await?;
        client.insert(mem, (NEW_ORDER, key), &[], &[]).await?;
        let mut sum = 0;
        for (line, (id, supply, quantity)) in (1..).zip(lines) {
            let Some(item) = client.get(mem, ITEM, of_item(1, *id)).await? else { return Ok(None) };
            let mut stock = there(client.get_to_change(mem, STOCK, of_item(*supply, *id)).await?);
            let left = stock.word(stock::QUANTITY);
            let restocked = if left >= quantity + 10 { left - quantity } else { left + 91 - quantity };
            stock.set_word(stock::QUANTITY, restocked);
            stock.set_word(stock::YTD, stock.word(stock::YTD) + quantity);
            stock.set_word(stock::ORDERS, stock.word(stock::ORDERS) + 1);
            let is_remote = u64::from(*supply != home);
            stock.set_word(stock::REMOTE, stock.word(stock::REMOTE) + is_remote);
            client.put(mem, &mut stock).await?;

            let amount = quantity * item.word(item::PRICE);
            sum += amount;
            let mut bytes = row(ORDER_LINE, &[*id, *supply, NONE, *quantity, amount]);
            bytes[40..].copy_from_slice(&stock.bytes[stock::district(*d)]);
            client.insert(mem, (ORDER_LINE, of_line(home, *d, number, line)), &[], &bytes).await?;
        }
        // Rates are hundredths of a per cent.
        let tax = warehouse.word(warehouse::TAX) + district.word(district::TAX);
        let discounted = sum * (10_000 - buyer.word(customer::DISCOUNT));
        Ok(Some(discounted / 100 * (10_000 + tax) / 10_000))
    }
}
