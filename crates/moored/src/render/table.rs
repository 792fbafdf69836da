//! A table: columns under a head, as wide as their widest cell. The same on a terminal and in a pipe, but for the colours.

use anstyle::Style;

use super::style::{STRONG, paint};

const GAP: &str = "   ";

/// Rows of cells.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// One more row of plain cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.styled_row(cells.into_iter().map(|cell| (cell, Style::new())));
    }

    /// One more row.
    pub(crate) fn styled_row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        self.rows.push(cells.into_iter().map(|(cell, style)| (on_one_line(&cell), style)).collect());
    }

    /// The whole of it.
    pub(crate) fn text(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, (cell, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let head: Vec<(String, Style)> = self.head.iter().map(|cell| ((*cell).to_owned(), STRONG)).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| line(row, &widths)).collect()
    }
}

/// The last cell is not padded: nothing follows it.
fn line(row: &[(String, Style)], widths: &[usize]) -> String {
    let mut text = String::new();
    for (index, ((cell, style), width)) in row.iter().zip(widths).enumerate() {
        text.push_str(&paint(*style, cell));
        if index + 1 < row.len() {
            let missing = width.saturating_sub(cell.chars().count());
            text.extend(std::iter::repeat_n(' ', missing));
            text.push_str(GAP);
        }
    }
    text.push('\n');
    text
}

/// A cell is one line and moves no cursor, whatever a server calls itself.
fn on_one_line(cell: &str) -> String {
    cell.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["A", "LONG"]);
        table.row(["wide cell".to_owned(), "x".to_owned()]);
        let plain = anstream::adapter::strip_str(&table.text()).to_string();
        assert_eq!(plain, "A           LONG\nwide cell   x\n");
    }

    #[test]
    fn a_cell_moves_no_cursor() {
        let mut table = Table::new(&["A"]);
        table.row(["a\n\u{1b}[2Jb".to_owned()]);
        let text = table.text();
        let row = text.lines().nth(1).expect("a row");
        assert_eq!(text.lines().count(), 2);
        assert!(!row.contains("\u{1b}[2J"), "{row:?}");
    }
}
