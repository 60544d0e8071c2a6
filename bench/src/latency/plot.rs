//! Latency by percentile, one line a subject, as SVG.

use std::path::Path;

use anyhow::Result;
use hdrhistogram::Histogram;
use plotters::prelude::*;

/// One chart of a grid.
pub struct Panel<'a> {
    /// What stands over it.
    pub title: String,
    /// A name and what it saw, in nanoseconds.
    pub lines: Vec<(&'static str, &'a Histogram<u64>)>,
}

/// The furthest right edge: p99.999.
const RIGHT: f64 = 1e5;

/// Told apart in grey and by those who see no red.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 90, 181),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(150, 150, 150),
    RGBColor(204, 121, 167),
];

/// Draws panels two in a row: percentiles to the right, microseconds up, both
/// logarithmic.
///
/// # Errors
/// The file cannot be written.
pub fn grid(path: &Path, title: &str, panels: &[Panel<'_>]) -> Result<()> {
    let rows = panels.len().div_ceil(2);
    let root = SVGBackend::new(path, (1_000, 40 + 340 * rows as u32)).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(title, ("sans-serif", 20))?;
    for (panel, area) in panels.iter().zip(root.split_evenly((rows, 2))) {
        draw(panel, &area)?;
    }
    root.present()?;
    Ok(())
}

fn draw(
    panel: &Panel<'_>,
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<()> {
    let longest = panel.lines.iter().map(|(_, h)| h.max()).max().unwrap_or(0);
    let top = (longest as f64 / 1e3).max(10.0) * 2.0;
    let most = panel.lines.iter().map(|(_, h)| h.len()).max().unwrap_or(0);
    let decades = (most.max(10) as f64).log10().ceil();
    let right = 10_f64.powf(decades).min(RIGHT);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(8)
        .margin_right(32)
        .x_label_area_size(34)
        .y_label_area_size(58)
        .build_cartesian_2d((1.0..right).log_scale(), (1.0..top).log_scale())?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|rest| percent(*rest))
        .y_label_formatter(&|value| format!("{value}"))
        .x_desc("percentile")
        .y_desc("µs")
        .draw()?;
    for (index, (name, histogram)) in panel.lines.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(points(histogram), colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 11))
        .draw()?;
    Ok(())
}

fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    if histogram.is_empty() {
        return Vec::new();
    }
    // Not further than the percentile that one request stands for.
    let last = (histogram.len() as f64).min(RIGHT);
    let steps = (last.log10() * 40.0).ceil() as i32;
    (0..=steps)
        .map(|step| {
            let rest = 10_f64.powf(f64::from(step) / 40.0).min(last);
            let value = histogram.value_at_quantile(1.0 - 1.0 / rest);
            (rest, (value as f64 / 1e3).max(1.0))
        })
        .collect()
}

fn percent(rest: f64) -> String {
    let percent = 100.0 * (1.0 - 1.0 / rest);
    let nines = (rest.log10().round() as usize).saturating_sub(2);
    format!("{percent:.nines$} %")
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn decades_are_nines() {
        let labels = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5].map(percent);
        assert_eq!(
            labels,
            ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]
        );
    }
}
