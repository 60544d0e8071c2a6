//! What is known as a frame. Pure: the same view always looks the same.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Row, Table, Wrap};

use super::axes::{Axis, axes};
use super::fit::{columns, count, cut, flow, heights};
use super::tables::{Listing, tables};
use crate::page::Snapshot;

/// Where the three axes stand side by side; in less room they are a few lines of text.
const WIDE: u16 = 66;
const HIGH: u16 = 18;

/// How one leaves.
const LEAVE: &str = "q leaves";

/// What is known of the servers.
#[derive(Debug)]
pub struct View {
    /// Whose it is.
    pub of: String,
    /// How often they are asked.
    pub interval: Duration,
    /// The newest that they told.
    pub shown: Option<Snapshot>,
    /// How old that is, if they told nothing when they were asked last.
    pub age: Option<Duration>,
    /// Why some told nothing.
    pub trouble: Option<String>,
}

/// Draws it, below a line that says whose it is, into a frame of any size.
pub fn draw(frame: &mut Frame, view: &View) {
    let trouble = trouble(view, frame.area().width);
    let troubled = u16::try_from(trouble.len()).unwrap_or(u16::MAX);
    let lines = [
        Constraint::Length(1),
        Constraint::Length(troubled),
        Constraint::Min(0),
    ];
    let [top, below, rest] = Layout::vertical(lines).areas(frame.area());
    frame.render_widget(title(view, usize::from(top.width)), top);
    let red = Style::new().fg(Color::Red);
    let trouble: Vec<Line> = trouble.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(trouble).style(red), below);
    match &view.shown {
        Some(shown) => body(frame, rest, shown),
        None => nothing(frame, rest, view),
    }
}

fn title(view: &View, width: usize) -> Line<'static> {
    let name = "tidegate top";
    let room = width.saturating_sub(count(name) + count(LEAVE) + 4);
    let of = cut(&view.of, room);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled(name, bold),
        Span::raw(format!("  {of:room$}  {LEAVE}")),
    ])
}

/// What is wrong, in at most three lines.
fn trouble(view: &View, width: u16) -> Vec<String> {
    let Some(trouble) = &view.trouble else {
        return Vec::new();
    };
    let text = match view.age.filter(|_| view.shown.is_some()) {
        Some(age) => format!("this is {} s old: {trouble}", age.as_secs()),
        None => trouble.clone(),
    };
    let words = text.split(' ').map(str::to_owned);
    let mut lines = flow(words, " ", usize::from(width));
    lines.truncate(3);
    lines
}

/// Says what to do where there is nothing to show.
fn nothing(frame: &mut Frame, area: Rect, view: &View) {
    let text = match view.trouble {
        None => "Asking.".to_owned(),
        Some(_) => format!(
            "\nNothing is shown until a worker or a frontend answers. It is asked again every \
             {:?}.\n\n--url says where one is, or where its metrics are: --admin-listen moves \
             them. Without a command, `tidegate` is a demo, with a frontend on port 8080 and \
             workers on 8100 and 8101.",
            view.interval
        ),
    };
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
}

fn body(frame: &mut Frame, area: Rect, shown: &Snapshot) {
    let (axes, tables) = (axes(shown), tables(shown));
    let wide = area.width >= WIDE && area.height >= HIGH;
    let compact = match wide {
        true => Vec::new(),
        false => text(&axes, usize::from(area.width)),
    };
    let lines = match wide {
        true => 1 + axes.iter().map(|axis| axis.pairs.len()).max().unwrap_or(0),
        // Tables have the other half.
        false => compact.len().min(usize::from(area.height.div_ceil(2))),
    };
    let lines = u16::try_from(lines).unwrap_or(u16::MAX).min(area.height);
    let wanted: Vec<u16> = tables
        .iter()
        .map(|table| u16::try_from(table.rows.len() + 2).unwrap_or(u16::MAX))
        .collect();
    let heights = heights(&wanted, area.height - lines);
    let all = std::iter::once(lines).chain(heights);
    let areas = Layout::vertical(all.map(Constraint::Length)).split(area);
    match wide {
        true => side_by_side(frame, areas[0], &axes),
        false => {
            let lines: Vec<Line> = compact.into_iter().map(Line::from).collect();
            frame.render_widget(Paragraph::new(lines), areas[0]);
        }
    }
    for (table, area) in tables.iter().zip(&areas[1..]) {
        if area.height > 0 {
            frame.render_widget(listing(table, *area), *area);
        }
    }
}

/// The axes without their titles.
fn text(axes: &[Axis], width: usize) -> Vec<String> {
    let pairs = axes.iter().flat_map(|axis| &axis.pairs);
    let texts = pairs.map(|(name, value)| format!("{name} {value}"));
    flow(texts, "  ", width)
}

fn side_by_side(frame: &mut Frame, area: Rect, axes: &[Axis; 3]) {
    let areas: [Rect; 3] = Layout::horizontal([Constraint::Ratio(1, 3); 3])
        .spacing(2)
        .areas(area);
    for (axis, area) in axes.iter().zip(areas) {
        let width = usize::from(area.width);
        let lines: Vec<Line> = match axis.unknown {
            Some(unknown) => vec![Line::from(format!("not known: {unknown}"))],
            None => axis.pairs.iter().map(|pair| spread(pair, width)).collect(),
        };
        let text = Paragraph::new(lines).wrap(Wrap { trim: true });
        frame.render_widget(text.block(titled(axis.title.to_owned())), area);
    }
}

/// A name on the left and its value on the right.
fn spread((name, value): &(String, String), width: usize) -> Line<'static> {
    let room = width.saturating_sub(count(name) + 1);
    Line::from(format!("{name} {value:>room$}"))
}

fn listing(table: &Listing, area: Rect) -> Table<'static> {
    let room = usize::from(area.width);
    let widths = |bars| {
        let of = |at: usize| {
            let rows = table.rows.iter().map(|row| count(&row[at].text(bars)));
            rows.max().unwrap_or(0).max(count(table.names[at]))
        };
        let wanted: Vec<usize> = (0..table.names.len()).map(of).collect();
        columns(&wanted, room)
    };
    let with = widths(true);
    // Bars go before a column does.
    let (bars, widths) = match with.len() == table.names.len() {
        true => (true, with),
        false => (false, widths(false)),
    };
    let shown = usize::from(area.height).saturating_sub(2);
    let title = match table.rows.len() {
        all if all > shown => format!("{}, {shown} of {all}", table.title),
        _ => table.title.to_owned(),
    };
    let rows = table.rows.iter().take(shown).map(|row| {
        let entries = row.iter().zip(&widths);
        Row::new(entries.map(|(entry, width)| cut(&entry.text(bars), *width)))
    });
    let names = Row::new(table.names.iter().copied().take(widths.len()));
    let fixed = widths
        .iter()
        .map(|width| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
    Table::new(rows, fixed)
        .header(names.style(Style::new().add_modifier(Modifier::BOLD)))
        .block(titled(title))
}

fn titled(title: String) -> Block<'static> {
    Block::new().borders(Borders::TOP).title(title)
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
