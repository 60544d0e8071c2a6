//! Prometheus' text format, read leniently.
//!
//! A page is read line by line, and a line that is not understood costs that
//! line only: a gauge that is needed is not lost because some other program
//! writes its histograms oddly. Nothing is copied.
//!
//! Libraries for this format do not fit: `prometheus-parse` 0.2 skips names with
//! a colon, which is all that vLLM, SGLang and llama.cpp write, and cuts labels
//! at commas; `nom-openmetrics` 0.3 gives a whole page up over a timestamp or a
//! space between labels, as older DCGM exporters write; `openmetrics-parser` is
//! under the LGPL.
//!
//! ```text
//! line = name [ "{" label "," … "}" ] value [ timestamp ] [ "#" exemplar ]
//! label = name "=" '"' text '"'
//! ```

use std::borrow::Cow;

/// One sample of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// The value; may be anything that a float can be.
    pub value: f64,
    labels: &'a str,
}

/// The samples of a page, in its order. Comments, empty lines and lines that are
/// not understood are left out.
pub fn samples(page: &str) -> impl Iterator<Item = Sample<'_>> {
    page.lines().filter_map(sample)
}

impl<'a> Sample<'a> {
    /// A label's text, with its escapes resolved.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.labels;
        loop {
            let (label, after) = label(rest)?;
            if label.0 == name {
                return Some(unescape(label.1));
            }
            rest = after;
        }
    }

    /// All labels, with their escapes resolved; nothing if something among them is
    /// not understood.
    #[must_use]
    pub fn labels(&self) -> Option<Vec<(&'a str, Cow<'a, str>)>> {
        let mut labels = Vec::new();
        let mut rest = self.labels;
        loop {
            rest = rest.trim_start().trim_start_matches(',').trim_start();
            if rest.is_empty() {
                return Some(labels);
            }
            let ((name, text), after) = label(rest)?;
            if !is_name(name) {
                return None;
            }
            labels.push((name, unescape(text)));
            rest = after;
        }
    }

    /// A label's text as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.label(name)?.trim().parse().ok()
    }
}

/// One line, if it is a sample.
#[must_use]
pub fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    let name_end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(inner) => {
            let end = closing(inner)?;
            (&inner[..end], &inner[end + 1..])
        }
        None => ("", rest),
    };
    // What an exemplar says is not this sample's.
    let own = rest.split_once('#').map_or(rest, |(own, _)| own);
    let mut words = own.split_ascii_whitespace();
    let value = words.next()?.parse().ok()?;
    let timestamp_is_one = words.next().is_none_or(|time| time.parse::<f64>().is_ok());
    let whole = timestamp_is_one && words.next().is_none();
    (whole && is_name(name)).then_some(Sample {
        name,
        value,
        labels,
    })
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// Where the labels' closing brace is: not one inside a label's text.
fn closing(inner: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    inner.bytes().position(|byte| {
        let ends = byte == b'}' && !quoted;
        quoted ^= byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

type Label<'a> = (&'a str, &'a str);

/// The first label, and what follows it.
fn label(labels: &str) -> Option<(Label<'_>, &str)> {
    let (name, rest) = labels.split_once('=')?;
    let text = rest.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    let name = name.trim_matches(|c: char| c == ',' || c.is_ascii_whitespace());
    Some(((name, &text[..end]), &text[end + 1..]))
}

fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some('n')) => plain.push('\n'),
            ('\\', Some(escaped @ ('"' | '\\'))) => plain.push(escaped),
            // Also a backslash before anything else, which is no escape here.
            _ => {
                plain.push(c);
                continue;
            }
        }
        chars.next();
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> Option<Sample<'_>> {
        samples(line).next()
    }

    #[test]
    fn names_values_labels_and_timestamps() {
        let sample =
            one("vllm:x_total{engine=\"0\", model_name=\"a,b}c=\\\"d\\\"\\n\\\\\",} 3.5e2 1700")
                .expect("a sample");
        assert_eq!((sample.name, sample.value), ("vllm:x_total", 350.0));
        assert_eq!(sample.number("engine"), Some(0));
        assert_eq!(sample.label("model_name").unwrap(), "a,b}c=\"d\"\n\\");
        assert_eq!(sample.label("model"), None);
        assert_eq!(sample.number("model_name"), None);
        assert!(one("x NaN").unwrap().value.is_nan());
        assert_eq!(one("x +Inf").unwrap().value, f64::INFINITY);
        assert_eq!(one("  x{}\t-1  ").unwrap().value, -1.0);
        assert_eq!(one("h{le=\"1\"} 7 # {id=\"x\"} 0.5").unwrap().value, 7.0);
        let spaced = one("a { b = \"1\" , c=\"2\" } 3").expect("a sample");
        let labels = spaced.labels().expect("they are understood");
        assert_eq!(labels, [("b", "1".into()), ("c", "2".into())]);
        assert_eq!(one("x{a=1} 2").unwrap().labels(), None);
    }

    #[test]
    fn a_bad_line_costs_that_line_only() {
        let bad = [
            "# TYPE x gauge",
            "",
            "x",
            "x{a=\"1\" 2",
            "x{a=\"}\" 2",
            "x two",
            "x 1 2 3",
            "x 1 later",
            "{a=\"1\"} 2",
            "1a 2",
            "é 1",
        ];
        let page = format!("a 1\n{}\nb 2\n", bad.join("\n"));
        let names: Vec<_> = samples(&page).map(|sample| sample.name).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(one("x{a=1} 2").unwrap().label("a"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(page in any::<String>(), name in any::<String>()) {
            for sample in samples(&page) {
                let _ = sample.label(&name);
            }
        }

        #[test]
        fn what_is_written_is_read(
            name in "[a-z_:][a-z0-9_:]{0,20}",
            label in "[a-z_]{1,8}",
            text in any::<String>(),
            value: f64,
        ) {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // A carriage return ends a line for `str::lines` only before a line feed.
            let line = format!("{name}{{other=\"\",{label}=\"{escaped}\"}} {value}");
            let sample = one(&line).expect("a sample");
            prop_assert_eq!(sample.name, name);
            prop_assert!(sample.value == value || value.is_nan());
            if label != "other" {
                prop_assert_eq!(sample.label(&label).unwrap(), text);
            }
        }
    }
}
