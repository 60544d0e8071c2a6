//! A page of metrics, kept: the policy's [reader](tidegate_policy::page), with
//! samples that own what they say, and lines that are none counted.

use std::collections::BTreeMap;

use tidegate_policy::page;

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
    let sample = page::sample(line)?;
    let labels = sample.labels()?.into_iter();
    Some(Sample {
        name: sample.name.to_owned(),
        labels: labels
            .map(|(name, text)| (name.to_owned(), text.into_owned()))
            .collect(),
        value: sample.value,
    })
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
