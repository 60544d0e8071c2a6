//! `tidegate policy` and `tidegate simulate`, as a person runs them.

mod program;

use program::{output, text};
use tidegate_policy::file;

/// A file of a test's own, removed at its end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tidegate-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        Scratch(folder)
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, file: &str, text: &str) -> String {
        std::fs::write(self.0.join(file), text).expect("written");
        self.path(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_file_that_init_prints_is_one_that_check_accepts() {
    let scratch = Scratch::new("init");
    let init = output(&["policy", "init"]);
    assert_eq!(text(&init.stdout), file::DEFAULT);
    let path = scratch.write("policy.toml", &text(&init.stdout));
    let check = output(&["policy", "check", &path]);
    assert_eq!(check.status.code(), Some(0));
    assert!(text(&check.stdout).contains("is a policy of 3 classes"));
}

#[test]
fn a_wrong_file_is_told_by_line_and_key() {
    let scratch = Scratch::new("wrong");
    let path = scratch.write("policy.toml", "\n[memory]\ncritical_from = 85\n");
    for arguments in [
        &["policy", "check", &path][..],
        &["simulate", "--policy", &path],
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = text(&output.stderr);
        let expected = "line 3, critical_from: invalid value: integer `85`, \
                        expected a number from 0 to 1";
        assert!(said.contains(expected) && said.contains(&path), "{said}");
    }
}

#[test]
fn what_is_not_understood_says_what_is_accepted() {
    for (arguments, expected) in [
        (["--loads", "1,0"], "from 0.001 to 1000000"),
        (["--ways", "door"], "open, gate, policy"),
        (["--policy-mode", "maybe"], "enforce, observe"),
        (["--max-num-seqs", "0"], "1..=100000"),
        (["--duration", "-3"], "seconds above 0"),
    ] {
        let output = output(&[&["simulate"][..], &arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_simulation_prints_figures_draws_and_repeats() {
    let scratch = Scratch::new("simulate");
    let plot = scratch.path("goodput.svg");
    let run = || {
        let arguments = [
            "simulate",
            "--duration",
            "20",
            "--loads",
            "0.5,3",
            "--plot",
            &plot,
        ];
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let figures = run();
    for part in [
        "no gate\n",
        "the gate alone\n",
        "with the policy\n",
        "bronze",
    ] {
        assert!(figures.contains(part), "{part}: {figures}");
    }
    assert_eq!(figures.matches(" all ").count(), 6, "{figures}");
    assert_eq!(run(), figures);
    let drawn = std::fs::read_to_string(&plot).expect("a plot");
    assert!(drawn.starts_with("<svg") && drawn.contains("with the policy"));
}

#[test]
fn what_is_only_observed_is_told() {
    let run = |mode| {
        let arguments = [
            "simulate",
            "--ways",
            "policy",
            "--loads",
            "3",
            "--duration",
            "10",
        ];
        let output = output(&[&arguments[..], &["--policy-mode", mode]].concat());
        text(&output.stdout)
    };
    assert!(run("observe").contains("would have refused: gold "));
    assert!(!run("enforce").contains("would have refused"));
}

#[test]
fn a_trace_in_either_format_is_replayed() {
    let scratch = Scratch::new("trace");
    let rows = |row: fn(u32) -> String| (0..200).map(row).collect::<String>();
    let azure = scratch.write(
        "trace.csv",
        &rows(|i| format!("2023-11-16 18:00:{:02}.{},{},20\n", i / 10, i % 10, 50 + i)),
    );
    let mooncake = scratch.write(
        "trace.jsonl",
        &rows(|i| {
            let (at, input) = (100 * i, 50 + i);
            format!("{{\"timestamp\":{at},\"input_length\":{input},\"output_length\":20}}\n")
        }),
    );
    let figures = [azure, mooncake].map(|path| {
        let arguments = [
            "simulate",
            "--trace",
            &path,
            "--duration",
            "5",
            "--loads",
            "0.5",
        ];
        let output = output(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    });
    assert_eq!(figures[0], figures[1], "the same requests in two formats");
    assert!(figures[0].contains("100.0 %"));
}
