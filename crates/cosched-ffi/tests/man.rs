//! The manual pages of the C library, section 3: one for each function of the header, and an overview.
//! `COSCHED_UPDATE=1 cargo test -p cosched-ffi` regenerates them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Serialises the tests: one may write the pages while another one reads them.
static PAGES: Mutex<()> = Mutex::new(());

/// A declaration of the header with its comment.
struct Item {
    comment: String,
    code: String,
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/c").join(name)
}

/// All declarations of the header that have a comment of their own.
fn items(header: &str) -> Vec<Item> {
    let mut found = Vec::new();
    let mut lines = header.lines();
    while let Some(line) = lines.next() {
        if line != "/**" {
            continue;
        }
        let text = |line: &str| line.trim().trim_start_matches('*').trim().to_owned();
        let comment: Vec<String> = lines.by_ref().take_while(|line| line.trim() != "*/").map(text).collect();
        let mut code = String::new();
        for line in lines.by_ref() {
            code.push_str(line);
            code.push('\n');
            // A struct or enum ends with an unindented line.
            if line.ends_with(';') && !line.starts_with("  ") || line.ends_with(");") {
                break;
            }
        }
        found.push(Item { comment: comment.join("\n"), code });
    }
    found
}

/// The name of the declared function, if the item is one.
fn function(item: &Item) -> Option<&str> {
    if item.code.starts_with("typedef") {
        return None;
    }
    let name = item.code.split('(').next()?.rsplit([' ', '*']).next()?;
    name.starts_with("cosched_").then_some(name)
}

/// The name of the defined type, if its members are public.
fn plain_type(item: &Item) -> Option<&str> {
    let open = item.code.starts_with("typedef struct {") || item.code.starts_with("typedef enum {");
    open.then(|| item.code.trim_end().rsplit(['}', ' ']).next().unwrap_or_default().trim_end_matches(';'))
}

/// The group of a page: jobs, pipelines, or common to both.
fn family(name: &str) -> &'static str {
    if name.starts_with("cosched_pipeline") {
        "pipelines"
    } else if name.starts_with("cosched_error") || name == "cosched_string_free" {
        "errors of pipelines"
    } else if name.contains("version") {
        "versions"
    } else {
        "jobs"
    }
}

/// Formats prose: text between backticks is the name of an argument.
fn prose(text: &str) -> String {
    let parts = plain(text).split('`').map(str::to_owned).collect::<Vec<_>>();
    let mark = |(index, part): (usize, &String)| if index % 2 == 1 { format!("\\fI{part}\\fP") } else { part.clone() };
    parts.iter().enumerate().map(mark).collect()
}

/// Formats code, with comments on one line if they fit.
fn listing(code: &str) -> String {
    let mut out = String::new();
    let mut lines = code.trim_end().lines();
    while let Some(line) = lines.next() {
        if line.trim() != "/**" {
            out += line;
            out.push('\n');
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let text = |line: &str| line.trim().trim_start_matches('*').trim().to_owned();
        let text: Vec<String> = lines.by_ref().take_while(|line| line.trim() != "*/").map(text).collect();
        let _ = writeln!(out, "{indent}/* {} */", text.join(&format!("\n{indent}   ")));
    }
    plain(&out)
}

/// Escapes text so that troff finds no requests in it.
fn plain(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let guard = |line: &str| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() };
    escaped.lines().map(guard).collect::<Vec<_>>().join("\n")
}

fn head(name: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".\\\" Made from cosched.h by crates/cosched-ffi/tests/man.rs; not to be changed by hand.\n\
         .TH {name} 3 \"\" \"cosched {version}\" \"Library of cosched\"\n"
    )
}

/// The text after the name in lists of pages: the first sentence of the comment.
fn summary(comment: &str) -> String {
    let joined = comment.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let sentence = joined.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let clause = sentence.split([';', ':']).next().unwrap_or_default().trim();
    let mut letters = clause.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().collect::<String>() + letters.as_str())
}

fn page(name: &str, item: &Item, types: &BTreeMap<&str, &Item>) -> String {
    let mut out = head(name);
    let _ = write!(out, ".SH NAME\n{} \\- {}\n", plain(name), prose(&summary(&item.comment)));
    out.push_str(".SH LIBRARY\nlibcosched (\\-lcosched; pkg\\-config: cosched)\n");
    let _ =
        write!(out, ".SH SYNOPSIS\n.nf\n#include <cosched.h>\n\n{}.fi\n.SH DESCRIPTION\n", plain(&item.code) + "\n");
    let mut errors = String::new();
    for paragraph in item.comment.split("\n\n") {
        match paragraph.strip_prefix("Errors: ") {
            Some(text) => errors = prose(text),
            None => {
                let _ = writeln!(out, "{}\n.PP", prose(paragraph));
            }
        }
    }
    for (_, used) in types.iter().filter(|(name, _)| item.code.contains(&format!("{name} *"))) {
        let _ = write!(out, "{}\n.PP\n.nf\n{}\n.fi\n", prose(&used.comment), listing(&used.code));
    }
    if family(name) == "jobs" && item.code.starts_with("int ") {
        out.push_str(
            ".SH RETURN VALUE\n0, or a negative number, a cosched_err: then nothing was changed or written, \
             cosched_strerror(3) says what the number means, and cosched_last_error(3) what happened.\n",
        );
    }
    if !errors.is_empty() {
        let _ = write!(out, ".SH ERRORS\n{errors}\n");
    }
    out + ".SH SEE ALSO\n.BR cosched (3),\n.BR cosched (1)\n"
}

/// The overview page of the library.
fn overview(items: &[Item], opening: &str) -> String {
    let mut out = head("cosched");
    out.push_str(".SH NAME\ncosched \\- gang scheduling and pipelines for programs in C and Fortran\n");
    out.push_str(".SH SYNOPSIS\n.nf\n#include <cosched.h>\n\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs cosched)\n.fi\n");
    out.push_str(".SH DESCRIPTION\n");
    for paragraph in opening.split("\n\n").skip(1) {
        let _ = writeln!(out, "{}\n.PP", prose(paragraph));
    }
    for wanted in ["jobs", "versions", "pipelines", "errors of pipelines"] {
        let _ = writeln!(out, ".SS Functions: {wanted}");
        for item in items {
            if let Some(name) = function(item).filter(|name| family(name) == wanted) {
                let _ = writeln!(out, ".TP\n.BR {} (3)\n{}", plain(name), prose(&summary(&item.comment)));
            }
        }
    }
    out.push_str(".SH ERRORS\nThe codes of the job functions, and the classes and states of jobs:\n");
    for name in ["cosched_err", "cosched_class", "cosched_state"] {
        let item = items.iter().find(|item| plain_type(item) == Some(name)).expect("the header has the type");
        let _ = write!(out, ".PP\n.nf\n{}\n.fi\n", listing(&item.code));
    }
    let example = std::fs::read_to_string(folder("examples/gang.c")).expect("the example");
    let _ = write!(out, ".SH EXAMPLES\nA program that registers itself:\n.PP\n.nf\n{}\n.fi\n", plain(&example));
    out + ".SH FILES\n/run/cosched/coschedd.sock: the socket of the system's daemon; the variable COSCHED_SOCKET names another.\n\
           .SH SEE ALSO\n.BR cosched (1),\n.BR coschedd (8)\n"
}

/// The expected contents of all pages, by file name.
fn pages() -> BTreeMap<String, String> {
    let header = std::fs::read_to_string(folder("include/cosched.h")).expect("the header");
    let items = items(&header);
    let types =
        items.iter().filter_map(|item| Some((plain_type(item)?, item))).filter(|(_, i)| i.code.contains("struct"));
    let types: BTreeMap<&str, &Item> = types.collect();
    let opening: Vec<&str> =
        header.lines().take_while(|line| line.trim() != "*/").map(|l| l.get(3..).unwrap_or("")).collect();
    let mut pages = BTreeMap::from([("cosched.3".to_owned(), overview(&items, &opening.join("\n")))]);
    for item in &items {
        if let Some(name) = function(item) {
            pages.insert(format!("{name}.3"), page(name, item, &types));
        }
    }
    pages
}

#[test]
fn the_manual_is_that_of_the_header() {
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let (pages, folder) = (pages(), folder("man"));
    let there = || std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    if std::env::var_os("COSCHED_UPDATE").is_some() {
        std::fs::create_dir_all(&folder).expect("the folder");
        for path in there() {
            std::fs::remove_file(path).expect("an old page goes");
        }
        for (name, text) in &pages {
            std::fs::write(folder.join(name), text).expect("a page is written");
        }
    }
    let named: Vec<String> =
        there().map(|p| p.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
    for name in &named {
        assert!(pages.contains_key(name), "{name} is no function's page; COSCHED_UPDATE=1 cargo test -p cosched-ffi");
    }
    for (name, text) in &pages {
        let old = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(old == *text, "{name} is not that of the header; COSCHED_UPDATE=1 cargo test -p cosched-ffi");
    }
}

/// Checked against the source, not against the header from which the pages are generated.
#[test]
fn every_exported_function_has_a_page_that_names_it() {
    let _alone = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sources = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut exported = Vec::new();
    while let Some(path) = sources.pop() {
        if path.is_dir() {
            sources.extend(std::fs::read_dir(path).expect("the source").flatten().map(|entry| entry.path()));
            continue;
        }
        let text = std::fs::read_to_string(path).expect("a source file");
        let names = text.split("extern \"C\" fn ").skip(1).filter_map(|rest| rest.split(['(', ' ', '"']).next());
        exported.extend(names.filter(|name| name.starts_with("cosched_")).map(str::to_owned));
    }
    assert!(exported.len() > 60, "{} functions", exported.len());
    for name in exported {
        let page = std::fs::read_to_string(folder("man").join(format!("{name}.3"))).unwrap_or_default();
        for part in [format!(".SH NAME\n{name} \\- "), format!("{name}(")] {
            assert!(page.contains(&part), "{name}.3 lacks '{part}'");
        }
    }
}
