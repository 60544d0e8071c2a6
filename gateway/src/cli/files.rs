//! How many files, and so connections, the process may have open.

use tracing::{debug, warn};

/// Below this many, a server's queue may not fit.
const ENOUGH: u64 = 65_536;

/// Raises the limit to what the system lets this process have, and warns if that
/// is little. Each request that is served takes two: its client's and the engine's.
pub fn raise_limit() {
    match rlimit::increase_nofile_limit(rlimit::INFINITY) {
        Ok(limit) if limit >= ENOUGH => debug!(limit, "open files"),
        Ok(limit) => warn!(
            limit,
            "few files may be open at once, and each connection is one: raise the hard limit \
             (ulimit -Hn, or LimitNOFILE= of a service) to {ENOUGH} or more"
        ),
        Err(error) => warn!(%error, "the limit of open files could not be raised"),
    }
}
