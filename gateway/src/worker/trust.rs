//! Which clients may claim a rank, a class or progress.

use std::net::IpAddr;

use clap::ValueEnum;

/// Whose claims are followed. Those of others are taken out of their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Trust {
    /// Clients on this machine.
    Loopback,
    /// Everyone.
    All,
    /// No one.
    None,
}

impl Trust {
    /// Whether a client at `peer` is believed.
    #[must_use]
    pub fn covers(self, peer: IpAddr) -> bool {
        match self {
            Self::Loopback => peer.to_canonical().is_loopback(),
            Self::All => true,
            Self::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_many_names() {
        for (peer, local) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("fe80::1", false),
        ] {
            let peer = peer.parse().unwrap();
            assert_eq!(Trust::Loopback.covers(peer), local, "{peer}");
            assert!(Trust::All.covers(peer));
            assert!(!Trust::None.covers(peer));
        }
    }
}
