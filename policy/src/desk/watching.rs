//! What the desk is told of the engine and of requests inside it, and what it
//! shows.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Alone, Desk, Entry, Moves};
use crate::class::ClassId;
use crate::fairness::Fairness;
use crate::judge::{EngineSize, Inside, Judge};
use crate::published::Reading;
use crate::quality::Attained;
use crate::settings::Settings;
use crate::shadow::{Counts, Mode};

impl<T> Desk<T> {
    /// A new state, or that there is none. Its [limit](Judge::limit) is in force from
    /// now on; [decide about everyone anew](Self::decide_anew) afterwards.
    pub fn observe(&mut self, now: Duration, reading: &Reading) {
        self.judge.observe(now, reading);
        self.fairness.turn(now);
    }

    /// Lets in who is next, and sends away who has become hopeless.
    pub fn decide_anew<P>(
        &mut self,
        now: Duration,
        gate: &mut impl FnMut(&T) -> Entry<P>,
        moves: &mut Moves<T, P>,
    ) {
        self.settle(now, gate, moves);
        self.decide_all(now, moves);
        self.holds(now);
    }

    /// The gate let a request in that was left to it.
    pub fn entered(&mut self, now: Duration, alone: Alone) -> Inside {
        let waited = now.saturating_sub(alone.arrived).as_secs_f64() * 1e3;
        self.judge
            .enters(now, alone.profile, waited, alone.concurrency)
    }

    /// The first token of a request came. [Settle](Self::settle) afterwards.
    pub fn first_token(&mut self, now: Duration, inside: &mut Inside) {
        self.judge.first_token(now, inside);
    }

    /// A request ended, having generated `output` tokens, if that is known. Settle
    /// afterwards.
    pub fn ended(&mut self, now: Duration, inside: Inside, output: Option<u64>) {
        self.throughput.ended(now);
        self.judge.ended(now, inside, output);
    }

    /// A request failed, or its client left. Settle afterwards.
    pub fn left(&mut self, now: Duration, inside: Inside) {
        self.throughput.ended(now);
        self.judge.left(inside);
    }

    /// New settings. Who is held stays so, in the class of the same name, or in
    /// the default one if there is none; what was learned stays where it fits.
    pub fn reload(&mut self, settings: Settings) {
        let old = self.judge.settings().classes.clone();
        let new = settings.classes.clone();
        let default = new.choose(None, None, "");
        let to = |class: ClassId| new.named(&old.get(class).name).unwrap_or(default);
        self.queues.reclass(new.all().len(), to);
        self.tally.reclass(&old, &new);
        self.fairness = Fairness::new(new.all(), settings.floor, settings.credit);
        self.judge.reload(settings);
        self.queues.classes().for_each(|class| self.mark(class));
    }

    /// The engine told its size.
    pub fn resize(&mut self, size: EngineSize) {
        self.judge.resize(size);
    }

    /// How many of a class are held.
    #[must_use]
    pub fn held(&self, class: ClassId) -> u64 {
        self.queues.len(class)
    }

    /// How many are held.
    #[must_use]
    pub fn held_in_all(&self) -> u64 {
        self.queues.total()
    }

    /// What a class's clients got lately.
    #[must_use]
    pub fn attained(&mut self, now: Duration, class: ClassId) -> Option<Attained> {
        self.judge.attained(now, class)
    }

    /// What it judges by, and has learned.
    #[must_use]
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Whether its decisions are carried out.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The same for classes that there are no more, by name.
    #[must_use]
    pub fn decisions_of_gone(&self) -> &BTreeMap<String, Counts> {
        self.tally.gone()
    }

    /// Decisions so far, by class.
    #[must_use]
    pub fn decisions(&self) -> &[Counts] {
        self.tally.classes()
    }
}
