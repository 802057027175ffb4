//! The page: head, sections, tables.

use std::fmt::Write;

/// A page under construction.
pub struct Page {
    html: String,
}

/// A column of a table: its title, and whether its entries are words (aligned to the left) or numbers.
pub type Title<'a> = (&'a str, bool);

impl Page {
    /// A page with a title and a line below it.
    pub fn new(title: &str, below: &str) -> Page {
        let (title, below) = (escape(title), escape(below));
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>\n{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"soft\">{below}</p>\n",
            include_str!("style.css")
        );
        Page { html }
    }

    /// The heading of a section.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.html, "<h2>{}</h2>", escape(text));
    }

    /// A paragraph of text.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.html, "<p>{}</p>", escape(text));
    }

    /// A figure with its caption.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        let _ = writeln!(self.html, "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>", escape(caption));
    }

    /// A visible table.
    pub fn table(&mut self, titles: &[Title<'_>], rows: &[Vec<String>]) {
        self.html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for (title, is_word) in titles {
            let _ = write!(self.html, "<th{}>{}</th>", class(*is_word), escape(title));
        }
        self.html.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.html.push_str("<tr>");
            for (entry, (_, is_word)) in row.iter().zip(titles) {
                let _ = write!(self.html, "<td{}>{}</td>", class(*is_word), escape(entry));
            }
            self.html.push_str("</tr>\n");
        }
        self.html.push_str("</tbody></table></div>\n");
    }

    /// A table that opens at a click.
    pub fn folded(&mut self, summary: &str, titles: &[Title<'_>], rows: &[Vec<String>]) {
        let _ = writeln!(self.html, "<details><summary>{}</summary>", escape(summary));
        self.table(titles, rows);
        self.html.push_str("</details>\n");
    }

    /// The whole document.
    pub fn finish(mut self) -> String {
        self.html.push_str("</body>\n</html>\n");
        self.html
    }
}

fn class(is_word: bool) -> &'static str {
    if is_word { " class=\"w\"" } else { "" }
}

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A number with at most four significant digits, for readers.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        _ if size >= 1000.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.01 => 3,
        _ if size >= 0.001 => 4,
        _ => return format!("{value:.1e}"),
    };
    format!("{value:.decimals$}")
}

/// A fraction in per cent, with one decimal and without the sign.
pub fn percent(part: f64) -> String {
    format!("{:.1}", part * 100.0)
}
