//! What fits into a frame, in columns and lines. Pure.

/// Columns between two of a table's.
const GAP: usize = 1;
/// Lines of a table that shows one row: its title, its names, the row.
const LEAST: u16 = 3;

/// The widths of as many of a table's columns, from the left, as fit into `width`. The
/// first may shrink to a third of the width, or 8 where that is more; what is left over
/// is spread evenly.
pub(super) fn columns(wanted: &[usize], width: usize) -> Vec<usize> {
    let Some((&first, others)) = wanted.split_first() else {
        return Vec::new();
    };
    let least = first.min((width / 3).max(8)).min(width);
    let (mut shown, mut used) = (1, least);
    for other in others {
        if used + GAP + other > width {
            break;
        }
        used += GAP + other;
        shown += 1;
    }
    let mut left = width - used;
    let grown = left.min(first.saturating_sub(least));
    left -= grown;
    let (each, odd) = (left / shown, left % shown);
    let widths = std::iter::once(least + grown).chain(others.iter().copied());
    widths
        .take(shown)
        .enumerate()
        .map(|(at, width)| width + each + usize::from(at == 0) * odd)
        .collect()
}

/// The lines that tables of these many get of `room`: each one row before any gets a
/// second. Those for whom not even one is left get none.
pub(super) fn heights(wanted: &[u16], room: u16) -> Vec<u16> {
    let shown = wanted.len().min(usize::from(room / LEAST));
    let mut heights: Vec<u16> = wanted.iter().map(|_| 0).collect();
    heights[..shown].fill(LEAST);
    let mut left = room - LEAST * u16::try_from(shown).unwrap_or(u16::MAX);
    loop {
        let mut grown = false;
        for (height, wanted) in heights.iter_mut().zip(wanted).take(shown) {
            if left > 0 && *height < *wanted {
                (*height, left, grown) = (*height + 1, left - 1, true);
            }
        }
        if !grown {
            return heights;
        }
    }
}

/// Texts side by side with `gap` between them, in lines of `width`. One that is longer
/// than a line has a line of its own.
pub(super) fn flow(
    texts: impl IntoIterator<Item = String>,
    gap: &str,
    width: usize,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        match lines.last_mut() {
            Some(line) if count(line) + count(gap) + count(&text) <= width => {
                line.push_str(gap);
                line.push_str(&text);
            }
            _ => lines.push(text),
        }
    }
    lines
}

/// A text in at most `width` columns: what is cut off at the end is one `…`.
pub(super) fn cut(text: &str, width: usize) -> String {
    if count(text) <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain("…".chars()).take(width).collect()
}

/// Columns that a text takes. What is shown is ASCII but for a name now and then.
pub(super) fn count(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_are_left_out_from_the_right() {
        assert_eq!(columns(&[4, 9, 7], 26), [6, 10, 8]);
        assert_eq!(columns(&[4, 9, 7], 22), [4, 9, 7]);
        assert_eq!(columns(&[4, 9, 7], 21), [8, 12]);
        assert_eq!(columns(&[40, 9, 7], 30), [12, 9, 7]);
        assert_eq!(columns(&[40, 9], 60), [45, 14]);
        assert_eq!(columns(&[40, 9], 3), [3]);
        assert_eq!(columns(&[], 3), [0; 0]);
        for width in 0..80 {
            let shown = columns(&[20, 9, 9, 30], width);
            let taken = shown.iter().sum::<usize>() + shown.len() - 1;
            assert_eq!(taken, width, "{shown:?}");
        }
    }

    #[test]
    fn every_table_has_a_row_before_one_has_two() {
        assert_eq!(heights(&[5, 9, 4], 40), [5, 9, 4]);
        assert_eq!(heights(&[5, 90, 4], 14), [5, 5, 4]);
        assert_eq!(heights(&[5, 90, 4], 10), [4, 3, 3]);
        assert_eq!(heights(&[5, 90, 4], 8), [4, 4, 0]);
        assert_eq!(heights(&[5, 90, 4], 2), [0, 0, 0]);
        assert_eq!(heights(&[], 9), [0; 0]);
    }

    #[test]
    fn texts_flow_into_lines_and_long_ones_are_cut() {
        let texts = ["ab", "cd", "efghi"].map(str::to_owned);
        assert_eq!(flow(texts, "  ", 6), ["ab  cd", "efghi"]);
        assert_eq!(
            [cut("abc", 3), cut("abc", 2), cut("abc", 0)],
            ["abc", "a…", ""]
        );
    }
}
