//! `tidegate policy`, and how commands read a policy file.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use thiserror::Error;
use tidegate_policy::class::Class;
use tidegate_policy::file::{self, FileError};
use tidegate_policy::settings::Settings;

/// Arguments of `tidegate policy`.
#[derive(Debug, Clone, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Print a policy file with every key at its default, and what each means.
    Init,
    /// Read a policy file, and say what it amounts to or what is wrong with it.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Why a policy file could not be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// The file could not be read.
    #[error("the policy file {path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something in it is wrong.
    #[error("{path}: {source}")]
    Wrong {
        /// The file.
        path: String,
        /// What, and where.
        source: FileError,
    },
}

/// Reads a policy file.
///
/// # Errors
/// It is unreadable, or something in it is wrong.
pub fn read(path: &Path) -> Result<Settings, PolicyError> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| PolicyError::Unreadable {
        path: name(),
        source,
    })?;
    file::parse(&text).map_err(|source| PolicyError::Wrong {
        path: name(),
        source,
    })
}

/// What the command prints.
///
/// # Errors
/// The file to check is unreadable, or something in it is wrong.
pub fn run(args: &PolicyArgs) -> Result<String, PolicyError> {
    match &args.action {
        Action::Init => Ok(file::DEFAULT.to_owned()),
        Action::Check { file } => Ok(describe(&file.display().to_string(), &read(file)?)),
    }
}

fn describe(name: &str, settings: &Settings) -> String {
    let classes = settings.classes.all();
    let mut text = format!("{name} is a policy of {} classes\n", classes.len());
    for class in classes {
        text += &line(class);
    }
    let default = settings.classes.choose(None, None, "");
    let default = &settings.classes.get(default).name;
    text + &format!("Requests that say nothing are {default}.\n")
}

fn line(class: &Class) -> String {
    let end = class.slo.end_to_end_ms;
    let end = end.map_or(String::new(), |ms| format!(", end within {ms} ms"));
    format!(
        "  {:<12} priority {}, weight {}, first token within {} ms{end}, \
         waits at most {} ms{}\n",
        class.name,
        class.priority,
        class.weight,
        class.slo.first_token_ms,
        class.queue_timeout.as_millis(),
        if class.critical { ", critical" } else { "" },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_described() {
        let text = describe("policy.toml", &file::parse(file::DEFAULT).unwrap());
        assert!(text.starts_with("policy.toml is a policy of 3 classes\n"));
        assert!(text.contains(
            "  gold         priority 2, weight 4, first token within 500 ms, \
             waits at most 150 ms, critical\n"
        ));
        assert!(text.ends_with("Requests that say nothing are silver.\n"));
    }

    #[test]
    fn errors_name_the_file() {
        let error = read(Path::new("/nonexistent/policy.toml")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/policy.toml"));
        let source = file::parse("\nx = 1").unwrap_err();
        let path = "p.toml".to_owned();
        let error = PolicyError::Wrong { path, source }.to_string();
        assert!(
            error.starts_with("p.toml: line 2, x: unknown field"),
            "{error}"
        );
    }
}
