//! Where on NATS things are said. The number is the version of what is said there:
//! another one would have subjects of its own.

use super::name::WorkerName;

/// Before a worker's name: its load.
const LOAD: &str = "tidegate.v1.load.";

/// The key-value bucket of the members.
pub const BUCKET: &str = "tidegate_members";

/// Before a worker's name: its entry in the bucket.
const MEMBER: &str = "$KV.tidegate_members.";

/// Where a worker says its load.
#[must_use]
pub fn load(name: &WorkerName) -> String {
    format!("{LOAD}{name}")
}

/// Where all workers say theirs.
#[must_use]
pub fn loads() -> String {
    format!("{LOAD}*")
}

/// Where a worker announces itself: its key in the bucket, as NATS stores it.
#[must_use]
pub fn member(name: &WorkerName) -> String {
    format!("{MEMBER}{name}")
}

/// Where all workers do.
#[must_use]
pub fn members() -> String {
    format!("{MEMBER}*")
}

/// The worker that a message of [`loads`] is about, by its subject.
#[must_use]
pub fn of_load(subject: &str) -> Option<WorkerName> {
    subject.strip_prefix(LOAD)?.parse().ok()
}

/// The worker that a message of [`members`] is about, by its subject.
#[must_use]
pub fn of_member(subject: &str) -> Option<WorkerName> {
    subject.strip_prefix(MEMBER)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_and_names_are_one() {
        let name: WorkerName = "w-1".parse().unwrap();
        assert_eq!(of_load(&load(&name)), Some(name.clone()));
        assert_eq!(of_member(&member(&name)), Some(name.clone()));
        assert_eq!(of_load(&member(&name)), None);
        assert_eq!(of_load("tidegate.v1.load.a.b"), None);
        assert_eq!(of_load("tidegate.v2.load.a"), None);
        assert!(member(&name).contains(BUCKET));
    }
}
