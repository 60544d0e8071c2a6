//! Python scripts of tests, each with pinned packages in an environment of its own.

use std::process::Command;
use std::sync::OnceLock;

const RUN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/run.sh");

/// A script, and the folder of its environment.
pub struct Python {
    script: &'static str,
    folder: &'static str,
    installed: OnceLock<Result<(), String>>,
}

impl Python {
    pub const fn new(script: &'static str, folder: &'static str) -> Self {
        Self {
            script,
            folder,
            installed: OnceLock::new(),
        }
    }

    /// What runs it, once it has arguments. Its environment is made by whichever test
    /// asks first.
    ///
    /// # Panics
    /// It cannot be made; the message says what is missing.
    pub fn command(&self) -> Command {
        let installed = self.installed.get_or_init(|| {
            let output = self.run().output();
            let output = output.map_err(|error| format!("sh does not run: {error}"))?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            output.status.success().then_some(()).ok_or(said)
        });
        if let Err(why) = installed {
            panic!("{} cannot be run: {why}", self.script);
        }
        self.run()
    }

    fn run(&self) -> Command {
        let mut command = Command::new("sh");
        command.args([RUN, self.script, self.folder]);
        command
    }
}
