//! The samples of one server on its page.

use crate::scrape::exposition::{Page, Sample};

/// The samples whose names begin with one prefix, and that have one label if that is
/// asked for.
#[derive(Clone, Copy)]
pub(super) struct Named<'p> {
    page: &'p Page,
    prefix: &'p str,
    only: Option<(&'p str, &'p str)>,
}

impl<'p> Named<'p> {
    pub(super) fn new(page: &'p Page, prefix: &'p str) -> Self {
        Self {
            page,
            prefix,
            only: None,
        }
    }

    /// Those of them whose label `name` says `value`.
    pub(super) fn only(self, name: &'p str, value: &'p str) -> Self {
        let only = Some((name, value));
        Self { only, ..self }
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &'p Sample> {
        let (of, name) = (*self, name.to_owned());
        self.page.samples.iter().filter(move |sample| {
            sample.name.strip_prefix(of.prefix) == Some(&name)
                && of
                    .only
                    .is_none_or(|(label_name, value)| label(sample, label_name) == value)
        })
    }

    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.all(name).next().map(|sample| sample.value)
    }

    pub(super) fn whole(&self, name: &str) -> u64 {
        self.value(name).map_or(0, whole)
    }
}

/// Counts are whole and not below 0, whatever a page says.
pub(super) fn whole(value: f64) -> u64 {
    // The conversion stops at the bounds, and what is no number is 0.
    value as u64
}

pub(super) fn label<'s>(sample: &'s Sample, name: &str) -> &'s str {
    sample.labels.get(name).map_or("", String::as_str)
}
