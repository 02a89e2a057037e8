//! A thread with its warehouse: draws transactions by the mix, and tries each one until it has committed.
//!
//! What must always hold: a transaction that has to be tried again asks for the same.

use rackmem::Nanos;

use super::delivery::Delivery;
use super::draw::Draw;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::schema::Scale;
use super::stock_level::StockLevel;
use crate::tx::{Client, Error, Lock, Locking, Row, Table, Words};

/// The five transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transaction {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

impl Transaction {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// As the specification calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new order",
            Self::Payment => "payment",
            Self::OrderStatus => "order status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock level",
        }
    }

    /// Of a hundred, 45 are new orders and 43 payments (clause 5.2.3); of 88, if nothing else is drawn.
    fn draw(draw: &mut Draw, mix: Mix) -> Self {
        let most = if mix == Mix::NewOrdersAndPayments { 88 } else { 100 };
        match draw.number(1, most) {
            1..=45 => Self::NewOrder,
            46..=88 => Self::Payment,
            89..=92 => Self::OrderStatus,
            93..=96 => Self::Delivery,
            _ => Self::StockLevel,
        }
    }
}

/// Which transactions are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Mix {
    /// All five, as specified.
    #[default]
    Specified,
    /// New orders and payments, as often as each other as specified: what GAM's published engine runs (`TpccConstants.h`).
    NewOrdersAndPayments,
}

/// So often the longest pause between two attempts is doubled.
const MOST_DOUBLINGS: usize = 10;

/// A thread's warehouse.
pub(super) struct Home {
    pub(super) warehouse: u64,
    /// How often another one is meant, in percent.
    distribution: u64,
}

impl Home {
    /// This warehouse, or sometimes another one.
    pub(super) fn other_or_own(&self, draw: &mut Draw) -> u64 {
        if draw.percent(self.distribution) { draw.other(self.warehouse) } else { self.warehouse }
    }
}

/// A row that loading has made.
pub(super) fn there(row: Option<Row>) -> Row {
    row.expect("the first population has it")
}

enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// How a transaction went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// Which it was.
    pub transaction: Transaction,
    /// False for a new order that was undone because it had an item that nobody has, as one in a hundred.
    pub committed: bool,
    /// From the first attempt on.
    pub took: Nanos,
    /// Which locks were taken when it was tried in vain.
    pub conflicts: Vec<(Table, Lock)>,
}

/// A thread.
pub struct Worker<L = Words> {
    client: Client<L>,
    id: u64,
    draw: Draw,
    /// Apart, so that what is asked for does not depend on conflicts.
    pauses: Draw,
    home: Home,
    payments: u64,
    mix: Mix,
}

impl<L> Worker<L> {
    /// The worker of this warehouse, that means another one so many times in a hundred. Of two with the same client, the later
    /// one needs another `run`, from 0 on.
    pub fn new(
        client: Client<L>,
        (id, run): (u64, u64),
        (scale, warehouse): (Scale, u64),
        distribution: u64,
        seed: u64,
    ) -> Self {
        let draw = Draw::new(random::mix(seed ^ (run << 16 | id) << 32), scale);
        let pauses = Draw::new(!id, scale);
        Self {
            client,
            id,
            draw,
            pauses,
            home: Home { warehouse, distribution },
            payments: run << 40,
            mix: Mix::default(),
        }
    }

    /// The same, which draws other transactions.
    #[must_use]
    pub fn with_mix(self, mix: Mix) -> Self {
        Self { mix, ..self }
    }

    /// Its client.
    pub fn into_client(self) -> Client<L> {
        self.client
    }

    /// Draws a transaction, and tries it until it has committed. `again` is called before each attempt but the first: who has
    /// the lock that was taken may need the processor.
    ///
    /// # Errors
    /// If the rack's memory fails or is full. Then somebody has to recover the client.
    pub async fn step<M: Locking<L>>(&mut self, mem: &mut M, again: impl Fn()) -> Result<Done, Error> {
        let (began, mut conflicts) = (mem.now(), Vec::new());
        let transaction = Transaction::draw(&mut self.draw, self.mix);
        let input = self.input(transaction);
        loop {
            match self.run(mem, &input).await {
                Ok(committed) => {
                    if committed {
                        self.client.commit(mem).await?;
                    } else {
                        self.client.abort(mem).await?;
                    }
                    return Ok(Done { transaction, committed, took: mem.now() - began, conflicts });
                }
                Err(Error::Conflict { table, lock }) => {
                    conflicts.push((table, lock));
                    self.client.abort(mem).await?;
                    again();
                    // Two that run in step would undo each other for ever.
                    let most = 1 << conflicts.len().min(MOST_DOUBLINGS);
                    self.client.pause(mem, self.pauses.number(0, most)).await?;
                }
                Err(other) => {
                    // Nothing of it stays, if that is possible.
                    let _ = self.client.abort(mem).await;
                    return Err(other);
                }
            }
        }
    }

    fn input(&mut self, transaction: Transaction) -> Input {
        let (draw, home) = (&mut self.draw, &self.home);
        match transaction {
            Transaction::NewOrder => Input::NewOrder(NewOrder::draw(draw, home)),
            Transaction::Payment => {
                self.payments += 1;
                Input::Payment(Payment::draw(draw, home, self.payments))
            }
            Transaction::OrderStatus => Input::OrderStatus(OrderStatus::draw(draw, home)),
            Transaction::Delivery => Input::Delivery(Delivery::draw(draw, home)),
            Transaction::StockLevel => Input::StockLevel(StockLevel::draw(draw, home)),
        }
    }

    async fn run<M: Locking<L>>(&mut self, mem: &mut M, input: &Input) -> Result<bool, Error> {
        let (client, home) = (&mut self.client, self.home.warehouse);
        match input {
            Input::NewOrder(input) => return Ok(input.run(client, mem, home).await?.is_some()),
            Input::Payment(input) => input.run(client, mem, (home, self.id)).await?,
            Input::OrderStatus(input) => input.run(client, mem, home).await?,
            Input::Delivery(input) => input.run(client, mem, home).await?,
            Input::StockLevel(input) => input.run(client, mem, home).await.map(|_| ())?,
        }
        Ok(true)
    }
}
