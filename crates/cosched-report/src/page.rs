//! The page: what a report says from the top to the bottom.

use super::Chart;
use serde::Serialize;

/// The file with a place for the data, built from `web/src/report`.
const FRAME: &str = include_str!("../../../web/dist/report.html");
const PLACE: &str = "{\"report\":0}";

/// A page under construction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Page {
    title: String,
    below: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Block {
    Heading(String),
    Text(String),
    Table(Table),
    Chart(Chart),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Table {
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    titles: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
}

/// A column of a table: its title, and whether its entries are words (aligned to the left) or numbers.
pub type Title<'a> = (&'a str, bool);

impl Page {
    /// A page with a title and a line below it.
    pub fn new(title: &str, below: &str) -> Page {
        Page { title: title.to_owned(), below: below.to_owned(), blocks: Vec::new() }
    }

    /// The heading of a section.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(text.to_owned()));
    }

    /// A paragraph of text.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Text(text.to_owned()));
    }

    /// A chart; the page shows a table of its data below it.
    pub fn chart(&mut self, chart: Chart) {
        self.blocks.push(Block::Chart(chart));
    }

    /// A visible table.
    pub fn table(&mut self, titles: &[Title<'_>], rows: Vec<Vec<String>>) {
        self.any_table(None, titles, rows);
    }

    /// A table that opens at a click.
    pub fn folded(&mut self, summary: &str, titles: &[Title<'_>], rows: Vec<Vec<String>>) {
        self.any_table(Some(summary.to_owned()), titles, rows);
    }

    fn any_table(&mut self, summary: Option<String>, titles: &[Title<'_>], rows: Vec<Vec<String>>) {
        let titles = titles.iter().map(|(title, is_word)| ((*title).to_owned(), *is_word)).collect();
        self.blocks.push(Block::Table(Table { summary, titles, rows }));
    }

    /// The charts, in their order.
    pub fn charts(&self) -> impl Iterator<Item = &Chart> {
        self.blocks.iter().filter_map(|block| if let Block::Chart(chart) = block { Some(chart) } else { None })
    }

    /// The whole document. Numbers that are none are null in it.
    pub fn finish(&self) -> String {
        // No text can end the element that the data is in.
        let data = serde_json::to_string(self).expect("texts and numbers").replace('<', "\\u003c");
        FRAME.replacen(PLACE, &data, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, Series, Shape, axis};

    #[test]
    fn a_page_is_one_file_and_its_data_cannot_leave_its_place() {
        let mut page = Page::new("<script>alert(1)</script>", "</script><!--");
        let points =
            vec![Point::from((1.0, f64::NAN)), Point { ci95: Some(0.5), note: "a".into(), ..(2.0, 3.0).into() }];
        let series = Series::new("\u{1b}[31m", 1, Shape::Line, points);
        let (x, y) = (axis("time", "s").log(), axis("of", "").named(["a".to_owned()]));
        page.heading("h");
        page.paragraph("p");
        page.folded("f", &[("t", true)], vec![vec!["{\"report\":0}".into()]]);
        page.chart(Chart::new("c", "", x, y, [series]));
        let html = page.finish();
        assert_eq!(
            (html.matches("</script>").count(), html.matches("<!--").count()),
            (2, 0),
            "data and script end once each"
        );
        let (before, rest) = FRAME.split_once(PLACE).unwrap();
        assert!(html.starts_with(before) && FRAME.matches(PLACE).count() == 1);
        let data = html[before.len()..].split_once("</script>").unwrap().0;
        let value: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(value["title"], "<script>alert(1)</script>");
        assert!(rest.len() + before.len() + data.len() == html.len());
        let expected = serde_json::json!({"chart": {
            "title": "c", "caption": "", "x": {"title": "time", "unit": "s", "log": true}, "y": {"title": "of", "unit": "", "names": ["a"]},
            "series": [{"name": "\u{1b}[31m", "style": 1, "shape": "line", "points": [
                {"x": 1.0, "y": null}, {"x": 2.0, "y": 3.0, "ci95": 0.5, "note": "a"}]}],
        }});
        assert_eq!(value["blocks"][3], expected);
        assert_eq!(page.charts().count(), 1);
    }

    #[test]
    fn the_frame_loads_nothing() {
        assert!(FRAME.contains("default-src 'none'") && FRAME.contains("script-src 'sha256-"));
        for word in ["src=\"", "@import", "url(", "unsafe-inline"] {
            assert!(!FRAME.contains(word), "{word}");
        }
    }
}
