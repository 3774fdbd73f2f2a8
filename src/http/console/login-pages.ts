import { invalidArgument } from '../../model/refusals.ts';
import type { LoggedIn, LoginTerms } from '../../services/console/console-operations.ts';
import type { ConsoleRoute, PageRequest } from './console-route.ts';
import { cookieOf } from '../limits/request-head.ts';
import {
  DEVICE_COOKIE,
  deviceCookie,
  noCookie,
  OPENID_COOKIE,
  openIdCookie,
  sessionCookie,
} from './cookies.ts';
import { html, type Html } from './html.ts';
import { givePage, seeOther } from './page.ts';
import type { ConsoleTerms } from './session-finder.ts';

const HOME = '/console/approvals';

/** GETs change nothing and count no attempt. */
export const loginRoutes = ({ people }: ConsoleTerms): readonly ConsoleRoute[] => [
  {
    method: 'GET',
    path: '/console',
    operation: 'getConsole',
    open: true,
    handle: ({ context, session }) => seeOther(context, session ? HOME : '/console/login'),
  },
  {
    method: 'GET',
    path: '/console/login',
    operation: 'getConsoleLogin',
    open: true,
    handle: ({ context, session }) => {
      const next = nextOf(new URLSearchParams(context.querystring).get('next') ?? undefined);
      givePage(context, {
        title: 'Log in',
        session,
        body: loginBody({ ...people.loginWays(), next, again: session?.person.name }),
      });
    },
  },
  {
    method: 'POST',
    path: '/console/login',
    operation: 'logInAtConsole',
    open: true,
    handle: async (request) => {
      const [name, password] = [fieldOf(request, 'name'), fieldOf(request, 'password')];
      enter(request, await people.loginByPassword(name, password, termsOf(request)));
    },
  },
  {
    method: 'GET',
    path: '/console/link',
    operation: 'getConsoleLink',
    open: true,
    handle: async ({ context }) => {
      const link = new URLSearchParams(context.querystring).get('token') ?? '';
      const isGood = await people.isLinkGood(link);
      givePage(context, {
        title: 'Log in with a link',
        status: isGood ? 200 : 403,
        body: isGood ? linkBody(link) : LINK_GONE,
      });
    },
  },
  {
    method: 'POST',
    path: '/console/link',
    operation: 'logInAtConsole',
    open: true,
    handle: async (request) =>
      enter(request, await people.loginByLink(fieldOf(request, 'token'), termsOf(request))),
  },
  {
    method: 'POST',
    path: '/console/openid',
    operation: 'beginOpenIdLogin',
    open: true,
    handle: async (request) => {
      const { context, site, token, session, fields } = request;
      const { url, sealed } = await people.startOpenId({
        redirectUri: site + CALLBACK,
        replaces: token,
        again: session !== undefined,
        next: nextOf(fields.get('next')),
        from: termsOf(request).from,
      });
      context.append('Set-Cookie', openIdCookie(sealed));
      givePage(context, {
        title: 'Continue to the provider',
        body: html`<p><a href="${url}">Continue to log in</a></p>`,
        goOn: url,
      });
    },
  },
  {
    method: 'GET',
    path: CALLBACK,
    operation: 'logInAtConsole',
    open: true,
    handle: async (request) => {
      const { context, site } = request;
      const sealed = cookieOf(context.req, OPENID_COOKIE) ?? '';
      context.append('Set-Cookie', noCookie(OPENID_COOKIE));
      const callback = new URL(context.req.url ?? '', site);
      enter(request, await people.loginByOpenId(sealed, callback, termsOf(request)));
    },
  },
];

const CALLBACK = '/console/openid/callback';

/**
 * Continues from a page of this site: a redirect from a provider's site would come without the
 * cookie.
 */
const enter = ({ context, fields }: PageRequest, { token, device, ...login }: LoggedIn): void => {
  context.append('Set-Cookie', sessionCookie(token));
  if (device !== undefined) context.append('Set-Cookie', deviceCookie(device));
  const next = nextOf(login.next ?? fields.get('next')) ?? HOME;
  givePage(context, {
    title: 'Logged in',
    body: html`<p><a href="${next}">Continue</a></p>`,
    goOn: next,
  });
};

const termsOf = ({ context, address, token }: PageRequest): LoginTerms => ({
  requestId: context.state.requestId,
  from: { address, device: cookieOf(context.req, DEVICE_COOKIE) },
  replaces: token,
});

const fieldOf = ({ fields }: PageRequest, name: string): string => {
  const value = fields.get(name);
  if (value === undefined || value === '') throw invalidArgument(name, 'is required');
  return value;
};

/** Undefined unless the path is a page of the console. */
const nextOf = (path: string | undefined): string | undefined =>
  path !== undefined && /^\/console(?:\/[\w-]+){1,3}$/.test(path) ? path : undefined;

const loginBody = ({
  password,
  openId,
  next,
  again,
}: {
  readonly password: boolean;
  readonly openId: boolean;
  readonly next: string | undefined;
  readonly again: string | undefined;
}): Html =>
  html`${
      again === undefined
        ? undefined
        : html`<p>You are logged in as ${again}. Logging in again ends that session.</p>`
    }
    ${
      password
        ? html`<form method="post" action="/console/login">
            <label
              >Name <input type="text" name="name" autocomplete="username" required autofocus
            /></label>
            <label
              >Password
              <input type="password" name="password" autocomplete="current-password" required
            /></label>
            ${hiddenNext(next)}
            <button>Log in</button>
          </form>`
        : undefined
    }
    ${
      openId
        ? html`<form method="post" action="/console/openid">
            ${hiddenNext(next)}
            <button>Log in with the identity provider</button>
          </form>`
        : undefined
    }
    <p>
      Who runs the daemon gets a link, good once within five minutes, by
      <code>sandpool console login</code>.
    </p>`;

/** Only the button consumes the link, since programs also open links. */
const linkBody = (link: string): Html =>
  html`<form method="post" action="/console/link">
    <input type="hidden" name="token" value="${link}" />
    <button autofocus>Log in</button>
  </form>`;

const LINK_GONE = html`<p class="error" role="alert">
    The link was used already, is too old, or was none.
  </p>
  <p><code>sandpool console login</code> prints another one.</p>`;

const hiddenNext = (next: string | undefined): Html | undefined =>
  next === undefined ? undefined : html`<input type="hidden" name="next" value="${next}" />`;
