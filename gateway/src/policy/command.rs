//! `tidegate policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidegate_policy::class::Class;
use tidegate_policy::file;
use tidegate_policy::settings::Settings;

use super::read::{PolicyError, read};

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
}
