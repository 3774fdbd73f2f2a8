import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Next } from 'koa';
import { withoutBase } from '../limits/request-head.ts';
import type { Context } from '../reply/context.ts';
import { openApiDocument } from '../openapi/document.ts';
import type { Route } from '../corridor/route.ts';
import { methodNotAllowed } from '../corridor/nothing-matched.ts';

interface Page {
  readonly type: string;
  readonly bytes: Buffer;
  readonly etag: string;
}

/**
 * Serves `/openapi.json`, the API viewer at `/docs`, and a start page at `/` for browsers, built at
 * their first request. They contact no other host, and run only their own scripts.
 */
export const pages = (
  routes: readonly Route[],
  { hasConsole }: { readonly hasConsole: boolean },
) => {
  const made = new Map<string, Promise<Page>>();
  const makers: Readonly<Record<string, () => Page | Promise<Page>>> = {
    '/openapi.json': () =>
      pageOf('application/json; charset=utf-8', JSON.stringify(openApiDocument(routes))),
    '/': () => pageOf('text/html; charset=utf-8', startHtml(hasConsole)),
    '/docs': () => pageOf('text/html; charset=utf-8', DOCS_HTML),
    '/docs/start.js': () => pageOf('text/javascript; charset=utf-8', DOCS_START),
    '/docs/swagger-ui.css': () => viewerFile('swagger-ui.css', 'text/css; charset=utf-8'),
    '/docs/swagger-ui-bundle.js': () =>
      viewerFile('swagger-ui-bundle.js', 'text/javascript; charset=utf-8'),
  };
  const makerOf = new Map(Object.entries(makers));
  return async (context: Context, next: Next): Promise<void> => {
    const path = withoutBase(context.path);
    const make = makerOf.get(path);
    // Only browsers get it.
    if (!make || (path === '/' && !/\btext\/html\b/.test(context.get('Accept')))) return next();
    if (context.method !== 'GET' && context.method !== 'HEAD')
      return methodNotAllowed(context, ['GET', 'HEAD']);
    const page = made.get(path) ?? Promise.resolve(make());
    made.set(path, page);
    context.state.route = path;
    answer(context, await page);
  };
};

const answer = (context: Context, { type, bytes, etag }: Page): void => {
  context.set({ ETag: etag, 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff' });
  if (type.startsWith('text/html'))
    context.set({ 'Content-Security-Policy': POLICY, 'Referrer-Policy': 'no-referrer' });
  context.status = 200;
  if (context.fresh) {
    context.status = 304;
    return;
  }
  context.type = type;
  context.body = bytes;
};

const pageOf = (type: string, content: string | Buffer): Page => {
  const bytes = Buffer.from(content);
  return { type, bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` };
};

const viewerFile = async (name: string, type: string): Promise<Page> => {
  const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
  return pageOf(type, await readFile(join(folder, name)));
};

/** The viewer's icons are `data:` images. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const CONSOLE_ITEM = '<li><a href="console">Console</a>: approvals and sessions</li>\n';

const startHtml = (hasConsole: boolean): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandpool</title>
<link rel="icon" href="data:,">
</head>
<body>
<h1>Sandpool</h1>
<ul>
${hasConsole ? CONSOLE_ITEM : ''}<li><a href="docs">API</a></li>
</ul>
</body>
</html>
`;

/** Relative links work under `/v1` and behind a proxy's path. */
const DOCS_HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandpool API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<noscript>
This page needs JavaScript. The document that it shows is <a href="openapi.json">openapi.json</a>.
</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** The validator would contact another host. A typed key is never stored. */
const DOCS_START = `SwaggerUIBundle({
  url: 'openapi.json', dom_id: '#docs', deepLinking: true, validatorUrl: null,
  displayOperationId: true, docExpansion: 'list', defaultModelsExpandDepth: 0,
  persistAuthorization: false, syntaxHighlight: { activated: true, theme: 'agate' },
});
`;
