//! Series of `/metrics` that are set to what is so whenever somebody reads them.

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// Where series go, and what each name begins with.
#[derive(Clone, Copy)]
pub(crate) struct Series<'a> {
    recorder: &'a dyn Recorder,
    prefix: &'a str,
    /// A label of all of them.
    all: Option<(&'static str, &'a str)>,
}

impl<'a> Series<'a> {
    /// Into `recorder`, each name after `prefix`.
    pub(crate) fn new(recorder: &'a dyn Recorder, prefix: &'a str) -> Self {
        Self {
            recorder,
            prefix,
            all: None,
        }
    }

    /// The same, each series with this label behind its own.
    pub(crate) fn with(self, label: &'static str, value: &'a str) -> Self {
        Self {
            all: Some((label, value)),
            ..self
        }
    }

    /// Says what a name means. One that ends in `_total` is a counter's, any other a
    /// gauge's; what ends in `_seconds` is in seconds.
    pub(crate) fn describe(&self, name: &str, meaning: &'static str) {
        let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
        let meaning = SharedString::const_str(meaning);
        match name.ends_with("_total") {
            true => self
                .recorder
                .describe_counter(self.name(name), unit, meaning),
            false => self.recorder.describe_gauge(self.name(name), unit, meaning),
        }
    }

    /// Sets a gauge.
    pub(crate) fn gauge(&self, name: &str, labels: &[(&'static str, &str)], value: f64) {
        let gauge = self
            .recorder
            .register_gauge(&self.key(name, labels), &METADATA);
        gauge.set(value);
    }

    /// Sets a gauge to 1 or 0.
    pub(crate) fn flag(&self, name: &str, labels: &[(&'static str, &str)], yes: bool) {
        self.gauge(name, labels, f64::from(u8::from(yes)));
    }

    /// Sets a counter, which never goes back.
    pub(crate) fn counter(&self, name: &str, labels: &[(&'static str, &str)], value: u64) {
        let counter = self
            .recorder
            .register_counter(&self.key(name, labels), &METADATA);
        counter.absolute(value);
    }

    fn key(&self, name: &str, labels: &[(&'static str, &str)]) -> Key {
        let labels = labels.iter().chain(&self.all);
        let labels = labels.map(|(name, value)| Label::new(*name, (*value).to_owned()));
        Key::from_parts(self.name(name), labels.collect::<Vec<_>>())
    }

    fn name(&self, name: &str) -> KeyName {
        KeyName::from(format!("{}{name}", self.prefix))
    }
}
