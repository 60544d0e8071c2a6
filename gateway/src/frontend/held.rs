//! What a request holds while a worker has it: its share of the worker's load, and
//! what there is to be counted.

use std::sync::Arc;

use super::hops::Ended;
use super::member::Member;
use super::record::{Outcome, Record};
use super::tokens::Tokens;
use crate::monitor;
use crate::proxy::relay::Hold;

/// One try at one worker, counted when this is dropped.
#[derive(Debug)]
pub(super) struct Hop {
    member: Arc<Member>,
    ended: Ended,
}

impl Hop {
    /// It has begun. Dropped as it is, the client has left.
    pub(super) fn new(member: Arc<Member>) -> Self {
        Self {
            member,
            ended: Ended::Left,
        }
    }

    /// How it ends.
    pub(super) fn ends(&mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        self.member.hops.count(self.ended);
        if let Ended::Answered | Ended::Failed | Ended::Left = self.ended {
            self.member.trial().one_more();
            self.member.watched.tell_news();
        }
    }
}

/// What is held until the answer is over.
#[derive(Debug)]
pub struct Held {
    pub(super) load: monitor::Held,
    pub(super) hop: Hop,
    pub(super) record: Arc<Record>,
    /// What it amounts to, if it comes to its end.
    pub(super) whole: Outcome,
    pub(super) tokens: Tokens,
    /// Events so far: about as many tokens.
    pub(super) events: u64,
}

impl Hold for Held {
    fn first_token(&mut self) {
        self.load.first_token();
        self.record.first_token();
    }

    fn passed(&mut self, piece: &[u8]) {
        let told = self.tokens.feed(piece);
        if told.events > 0 {
            self.events = self.events.saturating_add(told.events);
            self.load.generated(told.events);
        }
        if let Some(tokens) = told.prompt {
            self.load.prompt_was(tokens);
        }
    }

    fn ended(&mut self, whole: bool) {
        let (ended, outcome) = if whole {
            (Ended::Answered, self.whole)
        } else {
            (Ended::Failed, Outcome::WorkerError)
        };
        self.hop.ends(ended);
        self.record.ends(outcome);
        if outcome == Outcome::Ok {
            self.record.served(self.events);
        }
    }
}
