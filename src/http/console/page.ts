import type { Context } from '../reply/context.ts';
import { html, type Html } from './html.ts';
import type { OpenSession } from '../../services/console/console-operations.ts';

export interface PageParts {
  readonly title: string;
  readonly body: Html;
  readonly session?: OpenSession;
  /** Opened at once. */
  readonly goOn?: string;
  readonly status?: number;
}

/** Runs no scripts, loads only its style sheet, and is not cached. */
export const givePage = (context: Context, page: PageParts): void => {
  context.status = page.status ?? 200;
  context.set(HEADERS);
  context.type = 'text/html; charset=utf-8';
  context.body = document(page).text;
};

export const seeOther = (context: Context, path: string): void => {
  context.set(HEADERS);
  context.status = 303;
  context.set('Location', path);
  context.body = '';
};

/** `same-origin`: with `no-referrer`, browsers would also hide the Origin of forms. */
export const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Content-Security-Policy': [
    "default-src 'none'",
    "style-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
};

const document = ({ title, body, session, goOn }: PageParts): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        ${refresh(goOn)}
        <title>${title} – Sandpool</title>
        <link rel="stylesheet" href="/console/style.css" />
      </head>
      <body>
        <header>
          <p class="brand">Sandpool</p>
          ${session ? navigation(session) : undefined}
        </header>
        <main>
          <h1>${title}</h1>
          ${body}
        </main>
      </body>
    </html> `;

const refresh = (goOn: string | undefined): Html | undefined =>
  goOn === undefined ? undefined : html`<meta http-equiv="refresh" content="0; url=${goOn}" />`;

const navigation = ({ person, csrf }: OpenSession): Html =>
  html`<nav aria-label="Console">
      <a href="/console/approvals">Approvals</a>
      <a href="/console/sessions">Sessions</a>
    </nav>
    <form method="post" action="/console/logout" class="who">
      <span><bdi>${person.name}</bdi> (${person.role})</span>
      ${csrfField(csrf)}
      <button>Log out</button>
    </form>`;

export const csrfField = (csrf: string): Html =>
  html`<input type="hidden" name="csrf" value="${csrf}" />`;

export const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 0 1rem 4rem; }
header {
  display: flex; flex-wrap: wrap; gap: 1rem; align-items: center;
  border-bottom: 1px solid #8888;
}
.brand { font-weight: 700; margin: .5rem 0; }
nav { display: flex; gap: 1rem; }
.who { margin-left: auto; display: flex; gap: .5rem; align-items: center; }
table { border-collapse: collapse; width: 100%; }
th, td {
  text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #8884; vertical-align: top;
}
label { display: block; margin: .6rem 0; }
input[type=text], input[type=password], textarea {
  display: block; font: inherit; padding: .3rem; width: 100%; max-width: 30rem;
  box-sizing: border-box;
}
button { font: inherit; padding: .3rem .9rem; }
.error { border: 2px solid #b00020; padding: .5rem 1rem; }
.given {
  white-space: pre-wrap; overflow-wrap: anywhere; word-break: break-all;
  unicode-bidi: isolate-override; direction: ltr;
  font-family: ui-monospace, monospace; background: #8882; padding: .6rem;
}
.given.short { display: inline; padding: 0 .2rem; }
.gone { background: #b0002033; }
.come { background: #00702033; }
.actions { display: flex; flex-wrap: wrap; gap: 2rem; }
`;
