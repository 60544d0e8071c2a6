//! Goodput over offered load, one line a way in, as SVG.

use std::path::Path;

use plotters::prelude::*;
use thiserror::Error;

use super::sweep::Point;

/// The plot could not be written.
#[derive(Debug, Error)]
#[error("the plot {path} cannot be written: {message}")]
pub struct PlotError {
    path: String,
    message: String,
}

/// Told apart in grey and by those who see no red.
const COLOURS: [RGBColor; 3] = [
    RGBColor(150, 150, 150),
    RGBColor(213, 94, 0),
    RGBColor(0, 90, 181),
];

/// Draws the goodput of each way in.
///
/// # Errors
/// The file cannot be written.
pub fn goodput(path: &Path, lines: &[(&str, Vec<Point>)]) -> Result<(), PlotError> {
    draw(path, lines).map_err(|error| PlotError {
        path: path.display().to_string(),
        message: error.to_string(),
    })
}

fn draw(path: &Path, lines: &[(&str, Vec<Point>)]) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.iter().flat_map(|(_, points)| points);
    let right = all().map(|p| p.load).fold(1.0, f64::max);
    let top = all()
        .map(|p| p.report.in_all().goodput())
        .fold(1.0, f64::max);
    let root = SVGBackend::new(path, (800, 480)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Answers that kept their promise", ("sans-serif", 20))
        .margin(12)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(0.0..right, 0.0..1.15 * top)?;
    chart
        .configure_mesh()
        .max_light_lines(1)
        .light_line_style(WHITE)
        .x_desc("offered load, as a multiple of what is sustainable")
        .y_desc("goodput, per second")
        .draw()?;
    for (index, (name, points)) in lines.iter().enumerate() {
        // Thicker below: lines that coincide are all seen.
        let style = COLOURS[index % COLOURS.len()]
            .stroke_width(9_u32.saturating_sub(3 * index as u32).max(2));
        let drawn = points.iter().map(|p| (p.load, p.report.in_all().goodput()));
        chart
            .draw_series(LineSeries::new(drawn, style).point_size(4))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 14))
        .draw()?;
    root.present()?;
    Ok(())
}
