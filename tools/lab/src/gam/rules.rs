//! The rules that GAM's coherence stands on, by name. A mutant leaves one out; a test shows that this is noticed.

/// Which rules hold. All of them, unless a mutant says otherwise.
pub trait Rules: 'static {
    /// The home grants a write when *all* sharers have acknowledged.
    const COLLECTS_EVERY_ACKNOWLEDGEMENT: bool = true;
    /// A block that was invalidated before it arrived is not kept.
    const DROPS_OVERTAKEN_BLOCKS: bool = true;
}

/// GAM as it is.
#[derive(Debug)]
pub struct AllRules;

impl Rules for AllRules {}
