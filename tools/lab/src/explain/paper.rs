//! The pencil: what passes between the places of a rack is written down, whichever protocol it belongs to.

use std::cell::RefCell;
use std::rc::Rc;

use sim::rack::Trace;
use sim::system::{Fault, Place};
use sim::{coherence, locks};
use wire::{Nanos, NodeId, PacketKind, Status};

use super::chart::{Chart, Step, What};

/// What has been written down.
pub(super) struct Paper<M> {
    pub(super) steps: Vec<Step>,
    /// Messages in flight, with their steps.
    open: Vec<(M, usize)>,
    pub(super) switch: usize,
}

/// A message as it is drawn.
pub(super) trait Drawn: Copy {
    /// What it says, and whether it carries data; None between two passes through the switch.
    fn drawn(&self) -> Option<(String, bool)>;

    /// Whether this is the same message.
    fn is(&self, other: &Self) -> bool;
}

pub(super) fn column(node: NodeId, switch: usize) -> usize {
    let index = node.index();
    if index < switch { index } else { index + 1 }
}

pub(super) fn note<M>(paper: &Rc<RefCell<Paper<M>>>, at: Nanos, column: usize, text: String) {
    paper.borrow_mut().steps.push(Step { at, what: What::Note { column, text } });
}

impl<M: Drawn> Paper<M> {
    pub(super) fn new(nodes: usize) -> Self {
        Self { steps: Vec::new(), open: Vec::new(), switch: nodes.min(1) }
    }

    pub(super) fn write(&mut self, at: Nanos, trace: &Trace<'_, M>) {
        match trace {
            Trace::Sent { message, envelope } => {
                let Some((label, block)) = message.drawn() else { return };
                let (from, to) = (self.place(envelope.from), self.place(envelope.to));
                self.open.push((**message, self.steps.len()));
                self.steps.push(Step { at, what: What::Message { from, to, handled: None, label, block } });
            }
            Trace::Handled { message, .. } if message.drawn().is_none() => {
                let what = What::Note { column: self.switch, text: "second pass".into() };
                self.steps.push(Step { at, what });
            }
            Trace::Handled { message, .. } => {
                if let Some(step) = self.close(message)
                    && let What::Message { handled, .. } = &mut self.steps[step].what
                {
                    *handled = Some(at);
                }
            }
            Trace::Lost { message, .. } => _ = self.close(message),
            Trace::Fault(fault) => {
                let (column, text) = self.fault(*fault);
                self.steps.push(Step { at, what: What::Note { column, text } });
            }
            _ => {}
        }
    }

    /// All of it, with times that count from the first step.
    pub(super) fn chart(&mut self, title: &str, nodes: usize, begin: Nanos) -> Chart {
        let mut columns: Vec<String> = (0..nodes).map(|node| format!("node {node}")).collect();
        columns.insert(self.switch, "switch".into());
        let mut steps = std::mem::take(&mut self.steps);
        steps.sort_by_key(|step| step.at);
        let first = steps.first().map_or(begin, |step| step.at);
        for step in &mut steps {
            step.at = step.at.saturating_sub(first);
            if let What::Message { handled: Some(handled), .. } = &mut step.what {
                *handled = handled.saturating_sub(first);
            }
        }
        Chart { title: title.into(), columns, steps }
    }

    fn close(&mut self, message: &M) -> Option<usize> {
        let index = self.open.iter().position(|(open, _)| open.is(message))?;
        Some(self.open.remove(index).1)
    }

    fn place(&self, place: Place) -> usize {
        match place {
            Place::Switch => self.switch,
            Place::Node(node) => column(node, self.switch),
        }
    }

    fn fault(&self, fault: Fault) -> (usize, String) {
        match fault {
            Fault::NodeStops(node) => (column(node, self.switch), "dies".into()),
            Fault::NodeRestarts(node) => (column(node, self.switch), "is back, empty".into()),
            Fault::SwitchStops => (self.switch, "dies".into()),
            Fault::SwitchRestarts => (self.switch, "is back, empty; a new epoch".into()),
            Fault::ShadowStops => (column(NodeId(0), self.switch), "loses the shadow".into()),
            Fault::ShadowRestarts => (column(NodeId(0), self.switch), "reads the shadow anew".into()),
        }
    }
}

impl Drawn for coherence::SimMessage {
    fn drawn(&self) -> Option<(String, bool)> {
        let Self::Message(message) = self else { return None };
        Some((label(self), message.data.is_some()))
    }

    fn is(&self, other: &Self) -> bool {
        self.packet() == other.packet()
    }
}

impl Drawn for locks::SimMessage {
    fn drawn(&self) -> Option<(String, bool)> {
        let packet = self.packet();
        let data = packet.payload > 0;
        let label = name(packet.kind) + if data { " + data" } else { "" };
        (!self.is_between_passes()).then_some((label, data))
    }

    fn is(&self, other: &Self) -> bool {
        self.packet() == other.packet()
    }
}

/// What a packet says, in a few words.
fn label(sim_message: &coherence::SimMessage) -> String {
    let packet = sim_message.packet();
    let mut label = name(packet.kind);
    if matches!(
        packet.kind,
        PacketKind::Ack
            | PacketKind::WriteBack
            | PacketKind::WriteBackAck
            | PacketKind::Close
            | PacketKind::CloseAck
    ) {
        if let coherence::SimMessage::Message(message) = sim_message
            && message.data.is_some()
        {
            label += " + block";
        }
    } else if packet.provider && packet.kind.is_request() {
        label += " (give data)";
    }
    if let Status::Refused(why) = packet.status
        && packet.kind == PacketKind::Ack
    {
        label += &format!(": refused, {why:?}");
    }
    label
}

/// A kind as the paper writes it: `ReadMiss` is READ-MISS.
fn name(kind: impl std::fmt::Debug) -> String {
    let mut out = String::new();
    for (at, letter) in format!("{kind:?}").chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            out.push('-');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}
