//! The search: breadth first, so that what is found first is found on a shortest way.

use wire::{AllRules, Rules};

use super::states::States;

/// What came out.
#[derive(Clone, Debug)]
pub struct Explored<C> {
    /// The scope's name.
    pub scope: &'static str,
    /// States.
    pub states: usize,
    /// Steps from a state to one that follows it.
    pub steps: usize,
    /// Steps of the longest of all shortest ways from the beginning.
    pub depth: usize,
    /// States in which everything is over.
    pub at_rest: usize,
    /// Local states of every node, and of the switch.
    pub local_states: Vec<usize>,
    /// Bytes taken by states and steps.
    pub bytes: usize,
    /// What of the protocol was reached.
    pub coverage: C,
    /// What was found.
    pub verdict: Verdict,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every state was looked at, and everything holds.
    Holds,
    /// There are more states than the search was allowed to look at; in those that it did, everything holds.
    Incomplete,
    /// Something does not hold.
    Broken(Counterexample),
}

/// A shortest way to what does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// What does not hold.
    pub what: String,
    /// It is about something that does not happen any more: a deadlock, or a state without a way to rest.
    pub stuck: bool,
    /// What happened, in order.
    pub trace: Vec<String>,
}

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// States found.
    pub states: usize,
    /// Of those, states whose successors are known.
    pub expanded: usize,
    /// Steps from the beginning.
    pub depth: usize,
    /// Bytes taken.
    pub bytes: usize,
}

/// What of a protocol was reached.
pub trait Reached: Default {
    /// Takes in what another search has reached.
    fn add(&mut self, other: &Self);

    /// Everything that there is to reach, with whether the switch and whether a node reached it.
    fn table(&self) -> Vec<(String, bool, bool)>;
}

/// A protocol whose small racks can be explored.
pub trait Protocol {
    /// A small rack.
    type Scope: 'static;
    /// What of it can be reached.
    type Coverage: Reached;

    /// Its name on the command line.
    const NAME: &'static str;

    /// All scopes.
    const SCOPES: &'static [Self::Scope];

    /// A scope's name, and what it is for.
    fn tell(scope: &Self::Scope) -> (&'static str, &'static str);

    /// Explores a scope: all states of it, or so many.
    fn explore(scope: &Self::Scope, most: usize, progress: impl FnMut(Progress)) -> Explored<Self::Coverage> {
        Self::explore_with_rules(AllRules, scope, most, progress)
    }

    /// The same with machines to which some rules do not apply.
    fn explore_with_rules<R: Rules>(
        rules: R,
        scope: &Self::Scope,
        most: usize,
        progress: impl FnMut(Progress),
    ) -> Explored<Self::Coverage>;

    /// The scope of this name.
    fn scope(name: &str) -> Option<&'static Self::Scope> {
        Self::SCOPES.iter().find(|scope| Self::tell(scope).0 == name)
    }
}

/// What can happen, with the state that follows or what is wrong with it.
pub(super) type Found<S> = (<S as Space>::Action, Result<<S as Space>::State, String>);

/// What is searched: states, what can follow each, and what must hold.
pub(super) trait Space: Sized {
    type State;
    type Action: Copy;
    type Coverage;

    /// The state as words, the same for equal states only.
    fn encode(&self, state: &Self::State, words: &mut Vec<u32>);

    fn decode(&self, words: &[u32]) -> Self::State;

    /// All that can happen next, with the state that follows or what is wrong with it.
    fn expand(&mut self, state: &Self::State, found: &mut Vec<Found<Self>>);

    /// Makes a new state canonical, and checks what must hold in every state.
    fn admit(&mut self, state: &mut Self::State) -> Result<(), String>;

    /// True if everything is over.
    fn is_at_rest(&self, state: &Self::State) -> bool;

    /// Checks what must hold then.
    fn check_at_rest(&mut self, state: &Self::State) -> Result<(), String>;

    /// A state that cannot go on, for messages.
    fn describe(&self, state: &Self::State) -> String;

    /// An action as a line of a trace.
    fn tell(&self, action: Self::Action) -> String;

    /// How many local states there are: of each node, of the switch.
    fn local_states(&self) -> Vec<usize>;

    /// What was reached.
    fn coverage(&self) -> Self::Coverage;
}

/// Looks at all states that follow from the first one, if there are not more than `most`.
pub(super) fn search<S: Space>(
    scope: &'static str,
    space: S,
    start: &S::State,
    most: usize,
    progress: &mut dyn FnMut(Progress),
) -> Explored<S::Coverage> {
    Search::new(space).run(scope, start, most, progress)
}

struct Search<S> {
    space: S,
    states: States,
    parents: Vec<u32>,
    /// Successors of all expanded states, one state after the other; and where each state's end.
    steps: Vec<u32>,
    ends: Vec<u64>,
    at_rest: Vec<u32>,
    depth: usize,
}

/// The search's first mistake: the state that it comes from, and what came next.
struct Mistake {
    from: u32,
    last: Option<String>,
    what: String,
    stuck: bool,
}

impl<S: Space> Search<S> {
    fn new(space: S) -> Self {
        Self {
            space,
            states: States::new(),
            parents: Vec::new(),
            steps: Vec::new(),
            ends: Vec::new(),
            at_rest: Vec::new(),
            depth: 0,
        }
    }

    fn run(
        mut self,
        scope: &'static str,
        start: &S::State,
        most: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Explored<S::Coverage> {
        let verdict = match self.search(start, most, progress) {
            Err(mistake) => Verdict::Broken(self.counterexample(mistake)),
            Ok(false) => Verdict::Incomplete,
            Ok(true) => match self.without_a_way_to_rest() {
                Some(from) => {
                    let what = "nothing that can happen from here on leads to rest".to_owned();
                    Verdict::Broken(self.counterexample(Mistake { from, last: None, what, stuck: true }))
                }
                None => Verdict::Holds,
            },
        };
        Explored {
            scope,
            states: self.states.len(),
            steps: self.steps.len(),
            depth: self.depth,
            at_rest: self.at_rest.len(),
            local_states: self.space.local_states(),
            bytes: self.bytes(),
            coverage: self.space.coverage(),
            verdict,
        }
    }

    fn bytes(&self) -> usize {
        self.states.bytes() + 4 * (self.parents.capacity() + self.steps.capacity()) + 8 * self.ends.capacity()
    }

    /// Looks at all states; false if there are too many.
    fn search(
        &mut self,
        start: &S::State,
        most: usize,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, Mistake> {
        let (mut words, mut found) = (Vec::new(), Vec::new());
        self.space.encode(start, &mut words);
        self.states.insert(&words);
        self.parents.push(0);
        let (mut at, mut level_ends) = (0, 1);
        while at < self.states.len() {
            if at == level_ends {
                self.depth += 1;
                level_ends = self.states.len();
            }
            if at.is_multiple_of(1 << 14) {
                let (states, depth, bytes) = (self.states.len(), self.depth, self.bytes());
                progress(Progress { states, expanded: at, depth, bytes });
            }
            if self.states.len() > most {
                return Ok(false);
            }
            let number = at as u32;
            let world = self.space.decode(self.states.get(number));
            self.space.expand(&world, &mut found);
            let wrong =
                |what: String, last: Option<String>| Mistake { from: number, last, what, stuck: false };
            if self.space.is_at_rest(&world) {
                self.space.check_at_rest(&world).map_err(|what| wrong(what, None))?;
                self.at_rest.push(number);
            } else if found.is_empty() {
                let what = format!("nothing can happen any more\n{}", self.space.describe(&world));
                return Err(Mistake { from: number, last: None, what, stuck: true });
            }
            for (action, next) in &mut found {
                let next = next.as_mut().map_err(std::mem::take);
                let admitted = next.and_then(|next| self.space.admit(next).map(|()| next));
                let next = admitted.map_err(|what| wrong(what, Some(self.space.tell(*action))))?;
                self.space.encode(next, &mut words);
                let (number, new) = self.states.insert(&words);
                if new {
                    self.parents.push(at as u32);
                }
                self.steps.push(number);
            }
            self.ends.push(self.steps.len() as u64);
            at += 1;
        }
        Ok(true)
    }

    /// The first state from which no state at rest can be reached.
    fn without_a_way_to_rest(&self) -> Option<u32> {
        let count = self.states.len();
        // The steps, backwards: how many lead to each state, then from where.
        let mut starts = vec![0u64; count + 1];
        for to in &self.steps {
            starts[*to as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut from = vec![0u32; self.steps.len()];
        let mut begin = 0;
        for (number, end) in (0u32..).zip(&self.ends) {
            for to in &self.steps[begin as usize..*end as usize] {
                from[next[*to as usize] as usize] = number;
                next[*to as usize] += 1;
            }
            begin = *end;
        }
        let mut reaches = vec![false; count];
        let mut open = self.at_rest.clone();
        open.iter().for_each(|at| reaches[*at as usize] = true);
        while let Some(at) = open.pop() {
            for before in &from[starts[at as usize] as usize..starts[at as usize + 1] as usize] {
                if !std::mem::replace(&mut reaches[*before as usize], true) {
                    open.push(*before);
                }
            }
        }
        reaches.iter().position(|reached| !reached).map(|at| at as u32)
    }

    /// The way to a mistake: the actions are found again by expanding the states on it once more.
    fn counterexample(&mut self, mistake: Mistake) -> Counterexample {
        let mut way = vec![mistake.from];
        while *way.last().expect("it is not empty") != 0 {
            way.push(self.parents[*way.last().expect("it is not empty") as usize]);
        }
        way.reverse();
        let (mut trace, mut words, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for pair in way.windows(2) {
            let world = self.space.decode(self.states.get(pair[0]));
            self.space.expand(&world, &mut found);
            let action = found.iter_mut().find_map(|(action, next)| {
                let next = next.as_mut().ok()?;
                self.space.admit(next).ok()?;
                self.space.encode(next, &mut words);
                (self.states.get(pair[1]) == words).then_some(*action)
            });
            let action = action.expect("a step that was taken can be taken again");
            trace.push(self.space.tell(action));
        }
        trace.extend(mistake.last);
        Counterexample { what: mistake.what, stuck: mistake.stuck, trace }
    }
}
