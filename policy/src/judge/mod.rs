//! The judge: puts the policy's parts together and keeps what they learn.
//!
//! It is told what happens (a new state, a request that entered, got its first
//! token, ended, gave up) and asked what to do with a request. It holds no
//! request, no clock and no lock; whoever uses it does.
//!
//! # What it adds to the parts
//! * **Credit.** A state is as old as the sampler's interval. What it let in
//!   since then is in no sample yet, so that memory in use is the greater of the
//!   sample's and the sum of the needs of all requests inside ([`Inside`]).
//! * **Order.** A request behind others that are held waits too, or it would
//!   overtake them.
//! * **Kept room.** A request whose class has its share waits for what is
//!   [kept](crate::kept) for others, too.
//! * **Probing.** Who is refused teaches nothing, so that an estimate that
//!   refuses everybody would never be corrected. When nothing but the estimate is in
//!   the way, one enters: at once if nobody is inside, and otherwise when nobody has
//!   entered for [`PROBE_AFTER`]. If it keeps its promise, the estimate is
//!   [disproved](ModelLatency::first_token_disproves), and the next enters at once:
//!   a handful of such answers undoes a slow spell, however long it was.
//! * **Failing open.** Without a fresh state it answers
//!   [`GateAlone`](crate::decision::Decision::GateAlone), but for a class's rate, which needs no state.

mod decide;
mod events;

use std::collections::HashMap;
use std::time::Duration;

use crate::class::{Class, ClassId, Classes};
use crate::cold_start::ColdStart;
use crate::drain::Drain;
use crate::headroom;
use crate::kept::{Kept, Room, Taken};
use crate::limit::Factors;
use crate::profile::{InputSize, ModelLatency, Profile};
use crate::published::Reading;
use crate::quality::{Attained, Quality};
use crate::rate::Bucket;
use crate::reason::Reason;
use crate::settings::Settings;
use crate::state::State;
use crate::tuner::Tuner;

/// Models that are learned apart; further ones are learned as one, so that names
/// that clients make up fill no memory.
pub const MOST_MODELS: usize = 64;

/// The time over which the quality of service is counted.
pub const QUALITY_PERIOD: Duration = Duration::from_secs(30);

/// After so long without an entry an estimate is put to the test.
pub const PROBE_AFTER: Duration = Duration::from_secs(1);

/// The engine's size, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSize {
    /// Most requests that the gate lets run, over all ranks.
    pub request_limit: u32,
    /// Its ranks, at least 1, which share that limit equally.
    pub ranks: u32,
    /// Most sequences in the engine's batch, over all ranks.
    pub batch: u32,
}

/// A request that is inside the engine. Give it back when it ends or leaves.
#[derive(Debug)]
#[must_use = "what it holds is free only once it is given back"]
pub struct Inside {
    profile: Profile,
    arrived: Duration,
    entered: Duration,
    takes: Taken,
    /// When its first token came.
    first_token: Option<Duration>,
    /// Input that the engine had to work through until its first token.
    input_until: u64,
    /// What of its promise the estimate said that it would break.
    doubted: Doubted,
}

/// Which parts of its promise a request was expected to break when it entered.
#[derive(Clone, Copy, Debug, Default)]
struct Doubted {
    first_token: bool,
    end_to_end: bool,
}

impl Inside {
    /// Its class.
    #[must_use]
    pub fn class(&self) -> ClassId {
        self.profile.class
    }
}

/// Decides for one engine.
#[derive(Debug)]
pub struct Judge {
    settings: Settings,
    size: EngineSize,
    state: Option<State>,
    cold: ColdStart,
    cold_factor: f64,
    tuner: Tuner,
    quality: Vec<Quality>,
    drains: Vec<Drain>,
    models: HashMap<String, ModelLatency>,
    rates: Vec<Option<Bucket>>,
    kept: Kept,
    inside: u64,
    promised: u64,
    unfilled: u64,
    last_entry: Duration,
    /// The last probe kept its promise: another may follow at once.
    proven: bool,
    /// When it was last told of a state.
    now: Duration,
}

impl Judge {
    /// Starts without a state: everything is left to the gate until one comes.
    #[must_use]
    pub fn new(settings: Settings, size: EngineSize) -> Self {
        let classes = settings.classes.all();
        Judge {
            size,
            state: None,
            cold: ColdStart::new(settings.cold_start),
            cold_factor: 1.0,
            tuner: Tuner::new(settings.tuner, settings.utilisation_target, Duration::ZERO),
            quality: qualities(classes),
            drains: vec![Drain::default(); classes.len()],
            models: HashMap::new(),
            rates: rates(classes),
            kept: Kept::new(classes.len(), settings.keep_room),
            settings,
            inside: 0,
            promised: 0,
            unfilled: 0,
            last_entry: Duration::ZERO,
            proven: false,
            now: Duration::ZERO,
        }
    }

    /// What it is set to.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The drain model of a class, whose error is a metric.
    #[must_use]
    pub fn drain(&self, class: ClassId) -> Option<&Drain> {
        self.drains.get(class.0)
    }

    /// Requests inside the engine, of those that were given in.
    #[must_use]
    pub fn inside(&self) -> u64 {
        self.inside
    }

    /// New settings. What was learned of a class stays with the one of the same
    /// name, and what was learned of models stays; rates start full.
    pub fn reload(&mut self, settings: Settings) {
        let (old, new) = (&self.settings.classes, &settings.classes);
        let drains = new.all().iter().map(|class| {
            let before = old.named(&class.name).ok();
            let drain = before.and_then(|id| self.drains.get(id.0));
            drain.cloned().unwrap_or_default()
        });
        self.drains = drains.collect();
        self.rates = rates(new.all());
        let names = |classes: &Classes| -> Vec<String> {
            classes.all().iter().map(|c| c.name.clone()).collect()
        };
        if names(old) != names(new) || settings.keep_room != self.settings.keep_room {
            self.kept.reset(new.all().len(), settings.keep_room);
        }
        self.quality = qualities(new.all());
        let tuned = |of: &Settings| (of.tuner, of.utilisation_target);
        if tuned(&settings) != tuned(&self.settings) {
            self.tuner = Tuner::new(settings.tuner, settings.utilisation_target, self.now);
        }
        if settings.cold_start != self.settings.cold_start {
            self.cold = ColdStart::new(settings.cold_start);
        }
        self.settings = settings;
    }

    /// The engine told its size, or the gate's limits were moved.
    pub fn resize(&mut self, size: EngineSize) {
        self.size = size;
    }

    /// Takes a new reading of the state; one that is not fresh fails open.
    pub fn observe(&mut self, now: Duration, reading: &Reading) {
        self.now = now;
        self.kept.turn(now);
        self.state = reading.fresh().copied();
        // Not a number says nothing about idling.
        let idle_ms = self.state.map_or(f64::NAN, |state| state.idle_ms);
        self.cold_factor = self.cold.observe(now, idle_ms);
        if self.state.is_some() {
            let reached = self.all_places_taken();
            self.tuner.look(now, reached);
        }
    }

    /// What a class's clients got over the last half minute to minute.
    #[must_use]
    pub fn attained(&mut self, now: Duration, class: ClassId) -> Option<Attained> {
        Some(self.quality.get_mut(class.0)?.attained(now))
    }

    /// The share of the gate's limit that is used, before cold starts and memory
    /// lower it.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.tuner.target()
    }

    /// The limit in force, over all ranks.
    #[must_use]
    pub fn limit(&self) -> u32 {
        let ranks = self.size.ranks.max(1);
        ranks.saturating_mul(self.limit_of(self.size.request_limit / ranks))
    }

    /// The limit in force in the place of this one: for the gate, which limits
    /// each rank.
    #[must_use]
    pub fn limit_of(&self, limit: u32) -> u32 {
        self.factors().limit(limit)
    }

    /// The profile of a request for one answer to `input` tokens.
    #[must_use]
    pub fn profile(
        &self,
        model: &str,
        class: ClassId,
        input: u64,
        most_output: Option<u64>,
    ) -> Profile {
        self.profile_of(model, class, InputSize::one(input), most_output)
    }

    /// The profile of a request: its need is its longest input and what that may
    /// generate, at most `most_output` and as much as its model's answers have on
    /// average. A tensor leaves nothing in the cache, and needs none of it.
    #[must_use]
    pub fn profile_of(
        &self,
        model: &str,
        class: ClassId,
        input: InputSize,
        most_output: Option<u64>,
    ) -> Profile {
        let usual = self.model(model).map_or(0, ModelLatency::output_tokens);
        let output = most_output.map_or(usual, |most| most.min(usual));
        Profile {
            model: model.to_owned(),
            class,
            input: input.all,
            need: match input.longest {
                0 if input.all > 0 => 0,
                longest => longest.saturating_add(output),
            },
            cost: input
                .all
                .saturating_add(output.saturating_mul(input.sequences)),
        }
    }

    /// A class holds so much from now on, all its requests together.
    pub fn holds(&mut self, class: ClassId, held: Room) {
        self.kept.holds(class, held);
    }

    /// A request is refused for want of room, and not held.
    pub fn misses(&mut self, profile: &Profile) {
        self.kept.misses(profile.class, Room::of_one(profile.need));
    }

    /// Takes a request's arrival against its class's rate; call once for each.
    ///
    /// # Errors
    /// The rate is used up.
    pub fn arrives(&mut self, now: Duration, class: ClassId) -> Result<(), Reason> {
        let bucket = self.rates.get_mut(class.0).and_then(Option::as_mut);
        let passes = bucket.is_none_or(|bucket| bucket.passes(now));
        passes.then_some(()).ok_or(Reason::RateLimit)
    }

    fn factors(&self) -> Factors {
        let share = self.memory().map_or(0.0, |memory| memory.share());
        Factors {
            target: self.tuner.target(),
            cold: self.cold_factor,
            headroom: headroom::factor(share, self.settings.critical_from),
        }
    }

    fn model(&self, name: &str) -> Option<&ModelLatency> {
        self.models.get(name).or_else(|| self.models.get(""))
    }
}

fn qualities(classes: &[Class]) -> Vec<Quality> {
    let quality = |class: &Class| Quality::new(class.slo, QUALITY_PERIOD, Duration::ZERO);
    classes.iter().map(quality).collect()
}

fn rates(classes: &[Class]) -> Vec<Option<Bucket>> {
    classes.iter().map(|c| c.rate.map(Bucket::new)).collect()
}

#[cfg(test)]
mod tests;
