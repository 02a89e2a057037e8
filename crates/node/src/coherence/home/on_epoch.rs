//! An epoch ends: the hottest blocks of this home move to the switch (section 5.2.2).

use alloc::vec::Vec;
use core::cmp::Reverse;

use wire::{BlockTag, Rules};

use super::HomeAgent;
use super::directory::Keeper;
use crate::coherence::config;
use crate::coherence::context::Context;

impl HomeAgent {
    pub(crate) fn on_epoch<S, R: Rules>(&mut self, cx: &mut Context<'_, S, R>) {
        let mut warm: Vec<(Reverse<u32>, BlockTag)> = Vec::with_capacity(self.warm.len());
        for tag in core::mem::take(&mut self.warm) {
            let entry = self.directory.entry(tag);
            let heat = core::mem::take(&mut entry.heat);
            if entry.keeper == Keeper::Home && heat > 0 {
                warm.push((Reverse(heat), tag));
            }
        }
        if cx.config.directory == config::Directory::Auto {
            self.stop_waiting();
            warm.sort_unstable();
            warm.truncate(cx.config.hottest);
            for (_, tag) in warm {
                self.want_added(cx, tag);
            }
        }
        self.resume_moves(cx);
    }
}
