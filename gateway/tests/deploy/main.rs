//! What `deploy/` holds is what Kubernetes, Compose and the program accept.

#[path = "../program/mod.rs"]
mod program;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use program::{output, text};
use serde::Deserialize;
use serde_norway::{Deserializer, Value};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/deploy");
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
const VENV: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/deploy-venv");

fn manifests() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(format!("{DEPLOY}/kubernetes")).unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    files
}

fn documents(file: &Path) -> Vec<Value> {
    let said = std::fs::read_to_string(file).unwrap();
    let documents = Deserializer::from_str(&said).map(Value::deserialize);
    documents.collect::<Result<_, _>>().unwrap()
}

/// The Python that has the validators, installed when it is first asked for.
fn python() -> &'static str {
    static READY: OnceLock<String> = OnceLock::new();
    READY.get_or_init(|| {
        let script = format!("{HERE}/install.sh");
        let run = Command::new("sh").args([&script, VENV]).output().unwrap();
        assert!(run.status.success(), "{}", text(&run.stderr));
        format!("{VENV}/bin/python")
    })
}

/// Whether the validator accepts these files, and what it says.
fn validated(kind: &str, files: &[PathBuf]) -> (bool, String) {
    let mut command = Command::new(python());
    command
        .arg(format!("{HERE}/validate.py"))
        .arg(kind)
        .args(files);
    let run = command.output().unwrap();
    let said = text(&run.stdout) + &text(&run.stderr);
    (run.status.success(), said)
}

/// A copy of a file with one thing wrong.
fn spoiled(file: &str, find: &str, replace: &str) -> PathBuf {
    let said = std::fs::read_to_string(format!("{DEPLOY}/{file}")).unwrap();
    assert!(said.contains(find), "{find}");
    let name = format!(
        "{}-{}",
        replace.replace(|c: char| !c.is_alphanumeric(), ""),
        "spoiled.yaml"
    );
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&copy, said.replacen(find, replace, 1)).unwrap();
    copy
}

#[test]
fn kubernetes_and_compose_accept_what_is_there_and_nothing_else() {
    let (accepted, said) = validated("kubernetes", &manifests());
    assert!(accepted, "{said}");
    let (accepted, said) = validated("compose", &[format!("{DEPLOY}/compose.yaml").into()]);
    assert!(accepted, "{said}");
    for (kind, file, find, replace) in [
        (
            "kubernetes",
            "kubernetes/worker.yaml",
            "replicas: 2",
            "replicas: two",
        ),
        (
            "kubernetes",
            "kubernetes/worker.yaml",
            "restartPolicy:",
            "restrtPolicy:",
        ),
        (
            "compose",
            "compose.yaml",
            "restart: unless",
            "restrt: unless",
        ),
    ] {
        let (accepted, said) = validated(kind, &[spoiled(file, find, replace)]);
        assert!(!accepted, "{replace}: {said}");
    }
}

/// The arguments of everything that runs the program.
fn arguments(said: &Value, found: &mut Vec<Vec<String>>) {
    match said {
        Value::Mapping(fields) => {
            let texts = |value: &Value| -> Option<Vec<String>> {
                let list = value.as_sequence()?.iter();
                list.map(|one| one.as_str().map(str::to_owned)).collect()
            };
            if fields.get("image").and_then(Value::as_str) == Some("tidegate") {
                let said = fields.get("args").or(fields.get("command"));
                found.push(said.and_then(texts).expect("arguments"));
            }
            fields.values().for_each(|value| arguments(value, found));
        }
        Value::Sequence(list) => list.iter().for_each(|value| arguments(value, found)),
        _ => {}
    }
}

/// What Kubernetes puts in the place of variables.
fn filled(argument: &str) -> String {
    argument
        .replace("$(POD_NAME)", "vllm-0")
        .replace("$(POD_IP)", "10.0.0.7")
}

#[test]
fn the_program_accepts_every_flag() {
    let mut found = Vec::new();
    let compose = PathBuf::from(format!("{DEPLOY}/compose.yaml"));
    for file in manifests().into_iter().chain([compose]) {
        documents(&file)
            .iter()
            .for_each(|said| arguments(said, &mut found));
    }
    assert!(found.len() >= 6, "{found:?}");
    for arguments in found {
        // Help comes last: whatever is before it has been read.
        let mut asked: Vec<String> = arguments.iter().map(|one| filled(one)).collect();
        asked.push("--help".to_owned());
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let run = output(&asked);
        assert!(run.status.success(), "{asked:?}: {}", text(&run.stderr));
        let wrong = [&asked[..1], &["--no-such-flag", "--help"]].concat();
        assert_eq!(output(&wrong).status.code(), Some(2));
    }
}

/// Another engine is asked for well before the worker refuses anyone.
#[test]
fn engines_are_added_before_anyone_is_refused() {
    let file = format!("{DEPLOY}/kubernetes/worker.yaml");
    let all = documents(Path::new(&file));
    let scaler = all
        .iter()
        .find(|one| one["kind"] == "HorizontalPodAutoscaler")
        .unwrap();
    let target = &scaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"];
    let target: u64 = target.as_str().unwrap().parse().unwrap();
    let mut found = Vec::new();
    all.iter().for_each(|said| arguments(said, &mut found));
    let flag = |name: &str| {
        let flags = found.iter().flatten();
        let mut values = flags.filter_map(|flag| flag.strip_prefix(name)?.parse::<u64>().ok());
        values.next().unwrap()
    };
    // What the engine runs, and twice as many queued, as nothing else is set.
    let refuses = 3 * flag("--max-num-seqs=");
    assert!(target < refuses / 3, "{target} of {refuses}");
    assert!(all.iter().any(|one| one["kind"] == "NetworkPolicy"));
}
