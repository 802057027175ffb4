//! The page, built from web/ and embedded in this program: nothing is loaded from anywhere else.

use super::guard::Guard;
use super::http::{Answer, Request};

const PAGE: &[u8] = include_bytes!("../../../../web/dist/index.html");
const SCRIPT: &[u8] = include_bytes!("../../../../web/dist/app.js");
const STYLE: &[u8] = include_bytes!("../../../../web/dist/app.css");
const PLAYGROUND: &[u8] = include_bytes!("../../../../web/dist/playground.html");
const PLAYGROUND_SCRIPT: &[u8] = include_bytes!("../../../../web/dist/playground.js");
const PLAYGROUND_STYLE: &[u8] = include_bytes!("../../../../web/dist/playground.css");

/// A file of the page. The page itself sets the cookie, if it was requested with the token.
pub(super) fn answer(path: &str, guard: &Guard, request: &Request) -> Answer {
    let (kind, body) = match path {
        "/" => ("text/html; charset=utf-8", PAGE),
        "/app.js" => ("text/javascript; charset=utf-8", SCRIPT),
        "/app.css" => ("text/css; charset=utf-8", STYLE),
        "/playground" => ("text/html; charset=utf-8", PLAYGROUND),
        "/playground.js" => ("text/javascript; charset=utf-8", PLAYGROUND_SCRIPT),
        "/playground.css" => ("text/css; charset=utf-8", PLAYGROUND_STYLE),
        _ => return Answer::text(404, "There is no such page.\n"),
    };
    if request.method != "GET" {
        return Answer::text(405, "This can only be looked at.\n");
    }
    let cookie = if path == "/" { guard.new_cookie(request) } else { None };
    Answer { cookie, ..Answer::of(200, kind, body.to_vec()) }
}
