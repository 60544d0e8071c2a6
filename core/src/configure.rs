//! Moving the limits: what was set, what was reported, applied within a turn.

use crate::balance::new_shares;
use crate::limits::{EngineReport, LimitError, Limits, ReportError, Settings};
use crate::lists::Lists;
use crate::shared::{Config, Ranks, Shared};

impl Shared {
    pub(crate) fn report_engine(&self, report: &EngineReport) -> Result<Limits, ReportError> {
        let ids = report.sorted_ranks()?;
        let mut config = self
            .config
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let known = self.ranks.get().map(|ranks| &ranks.ids);
        if let Some(known) = known.filter(|known| **known != ids) {
            return Err(ReportError::OtherRanks(known.clone()));
        }
        // A report that does not say keeps what an earlier one said.
        let max_num_seqs = report.max_num_seqs.or(config.max_num_seqs);
        let limits = config
            .settings
            .resolve_for(ids.len(), max_num_seqs)
            .map_err(ReportError::Limit)?;
        config.max_num_seqs = max_num_seqs;
        if known.is_some() {
            self.apply(&mut config, limits);
            drop(config);
            self.capacity_moved();
            return Ok(limits);
        }
        // All allocated before the turn.
        let wider = Lists::new(ids.len() + 1);
        let ranks = Box::new(Ranks::new(ids, limits.request_queue_limit, self.counting));
        let Limits {
            engine_request_limit: r,
            engine_request_waiting_limit: w,
            ..
        } = limits;
        let count = ranks.ids.len();
        let others = new_shares(count - 1, r, w);
        let old = self.within_turn(|shared, lists| {
            let old = lists.widen(wider);
            shared.budget.split(others, r, w);
            shared
                .total
                .set_limit(u64::from(limits.request_queue_limit) * count as u64);
            shared.ranks.get_or_publish(ranks);
            old
        });
        drop((old, config));
        self.capacity_moved();
        Ok(limits)
    }

    pub(crate) fn set_limits(&self, settings: Settings) -> Result<Limits, LimitError> {
        let mut config = self
            .config
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let settings = settings.or(config.settings);
        let limits = settings.resolve_for(self.budget.len(), config.max_num_seqs)?;
        config.settings = settings;
        self.apply(&mut config, limits);
        drop(config);
        self.capacity_moved();
        Ok(limits)
    }

    fn apply(&self, config: &mut Config, limits: Limits) {
        let Limits {
            engine_request_limit: r,
            engine_request_waiting_limit: w,
            ..
        } = limits;
        self.within_turn(|shared, _| {
            if (r, w) != shared.budget.engine_limits() {
                shared.budget.resize(r, w);
            }
            let queue = limits.request_queue_limit;
            (1..shared.lanes()).for_each(|lane| shared.lane(lane).queue.set_limit(queue));
            shared
                .total
                .set_limit(u64::from(queue) * shared.budget.len() as u64);
        });
        config.limits = limits;
    }

    /// Foreign wakers run here: without the lock and outside the turn.
    fn capacity_moved(&self) {
        self.run_wanted();
        self.fire_room();
    }

    pub(crate) fn stop(&self) {
        // Within a turn: no other turn clears the flags that shut the gate.
        self.within_turn(|shared, _| shared.shut());
        self.capacity_moved();
    }

    /// The dispatcher thread: runs the turns that are wanted until nobody is left.
    pub(crate) fn dispatch(&self) {
        loop {
            let bell = self.turn.bell();
            self.run_wanted();
            if self.holders.are_gone() {
                return;
            }
            self.turn.sleep(bell);
        }
    }
}
