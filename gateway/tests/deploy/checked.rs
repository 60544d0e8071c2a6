//! The files, read and checked against schemas by `check.py`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use serde_json::Value;

use super::python::Python;

const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
const COPIES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/deploy-copies");

/// What reads and checks them.
static TOOLS: Python = Python::new(
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deploy/check.py"),
    concat!(env!("CARGO_TARGET_TMPDIR"), "/deploy-tools"),
);

/// What is in a folder.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Checked {
    /// What is wrong, a sentence each.
    pub faults: Vec<String>,
    /// Kubernetes' objects.
    pub base: Vec<Value>,
    /// The same, with NATS.
    pub nats: Vec<Value>,
    /// Compose's model.
    pub compose: Value,
    /// The same, with NATS.
    pub compose_nats: Value,
    /// What prometheus-adapter is told.
    pub adapter: Value,
}

/// The files as they are.
pub fn shipped() -> &'static Checked {
    static CHECKED: OnceLock<Checked> = OnceLock::new();
    CHECKED.get_or_init(|| check(&[PathBuf::from(SHIPPED)]).remove(0))
}

/// The files, with one text replaced by another in each copy: `(file, from, to)`.
pub fn changed(changes: &[(&str, &str, &str)]) -> Vec<Checked> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let copies = changes.iter().map(|(file, from, to)| {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let copy = Path::new(COPIES).join(format!("{}-{id}", std::process::id()));
        let _ = fs::remove_dir_all(&copy);
        copy_folder(Path::new(SHIPPED), &copy);
        let path = copy.join(file);
        let text = fs::read_to_string(&path).expect("a text");
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(path, text.replacen(from, to, 1)).expect("a file");
        copy
    });
    let copies: Vec<PathBuf> = copies.collect();
    let checked = check(&copies);
    for copy in copies {
        fs::remove_dir_all(copy).expect("a folder");
    }
    checked
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn check(folders: &[PathBuf]) -> Vec<Checked> {
    let output = TOOLS.command().args(folders).output().expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "check.py runs: {said}");
    serde_json::from_slice(&output.stdout).expect("what check.py says it prints")
}
