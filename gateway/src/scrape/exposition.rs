//! Prometheus' text format, read as tolerantly as servers write it.
//!
//! The parsers on crates.io stop at colons in names (vLLM's), braces in label
//! values, time stamps or infinities, and at the first line that they do not
//! know. Here a line that is no sample is passed over and counted.

use std::collections::BTreeMap;

/// One line's worth: a series and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The metric's name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The value, which may be any number and none.
    pub value: f64,
}

/// A page, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Every sample, in the order of the lines.
    pub samples: Vec<Sample>,
    /// Lines that are neither samples, comments nor empty.
    pub passed_over: usize,
}

/// Reads a page. Time stamps and exemplars are ignored.
#[must_use]
pub fn read(text: &str) -> Page {
    let mut page = Page::default();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match sample(line) {
            Some(sample) => page.samples.push(sample),
            None => page.passed_over += 1,
        }
    }
    page
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    if !is_name(name) {
        return None;
    }
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    // Rust reads every spelling of infinity and of no number that Go writes.
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// Reads labels up to the closing brace, and gives what is behind it.
fn labels(mut rest: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((labels, behind));
        }
        let (name, behind) = rest.split_once('=')?;
        let name = name.trim();
        if !is_name(name) {
            return None;
        }
        let (value, behind) = quoted(behind.trim_start().strip_prefix('"')?)?;
        labels.insert(name.to_owned(), value);
        rest = behind.trim_start();
        // A comma may also stand before the brace.
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Reads a value up to its closing quote, and gives what is behind it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                escaped @ ('"' | '\\') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            _ => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> Sample {
        let mut page = read(line);
        assert_eq!((page.samples.len(), page.passed_over), (1, 0), "{line}");
        page.samples.remove(0)
    }

    #[test]
    fn what_servers_write_is_read() {
        let vllm = one(
            r#"vllm:num_requests_running{engine="0",model_name="org/a,b}c",} 3.0 1700000000000"#,
        );
        assert_eq!(vllm.name, "vllm:num_requests_running");
        assert_eq!(vllm.labels["model_name"], "org/a,b}c");
        assert_eq!(vllm.value, 3.0);
        assert_eq!(one("llamacpp:requests_processing 0").value, 0.0);
        assert_eq!(one("a{} +Inf").value, f64::INFINITY);
        assert_eq!(one("a { b = \"1\" , c=\"2\" }\t-1e3").value, -1000.0);
        assert_eq!(one("h_bucket{le=\"1\"} 7 # {id=\"x\"} 0.5").value, 7.0);
        assert!(one("a NaN").value.is_nan());
        assert_eq!(
            one(r#"a{b="\"x\\\n\d"} 1"#).labels["b"],
            "\"x\\\n\\d".to_owned()
        );
    }

    #[test]
    fn other_lines_are_passed_over() {
        let page = read("# TYPE a gauge\n\na 1\r\n{} 1\n1a 1\na\na x\na{b=\"1} 1\na{b=1} 1\n# EOF");
        assert_eq!((page.samples.len(), page.passed_over), (1, 6));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in ".{0,80}", near in r#"a[{}="\\, 1b]{0,30}"#) {
            let _ = (read(&text), read(&near));
        }

        #[test]
        fn what_is_written_reads_back(value in any::<f64>(), label in any::<String>()) {
            let escaped = label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', "\\n");
            // Line ends within a label are escaped by whoever writes them.
            prop_assume!(!label.contains('\r'));
            let read = one(&format!("a{{b=\"{escaped}\"}} {value}"));
            prop_assert_eq!(&read.labels["b"], &label);
            prop_assert!(read.value == value || value.is_nan());
        }
    }
}
