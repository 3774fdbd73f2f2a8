import type { ListedSession } from '../../services/console/console-operations.ts';
import { timestampOf } from '../corridor/common-schema.ts';
import type { ConsoleRoute, PageRequest } from './console-route.ts';
import { SESSION_COOKIE } from '../limits/request-head.ts';
import { noCookie } from './cookies.ts';
import { html, type Html } from './html.ts';
import { csrfField, givePage, HEADERS, seeOther } from './page.ts';
import type { ConsoleTerms } from './session-finder.ts';

export const sessionRoutes = ({ people }: ConsoleTerms): readonly ConsoleRoute[] => [
  {
    method: 'GET',
    path: '/console/sessions',
    operation: 'listConsoleSessions',
    handle: async ({ context, session }) => {
      if (!session) return;
      const { person, csrf } = session;
      const sessions = await people.listSessions(person);
      const rows = sessions.map((each) => sessionRow(each, person.sessionId, csrf));
      givePage(context, { title: 'Sessions', session, body: sessionsBody(rows, csrf) });
    },
  },
  {
    method: 'GET',
    path: '/console/session',
    operation: 'getConsoleSession',
    handle: ({ context, session }) => {
      if (session) giveSession(context, session);
    },
  },
  {
    method: 'POST',
    path: '/console/sessions/end',
    operation: 'endConsoleSession',
    handle: async ({ context, session, fields }) => {
      if (!session) return;
      const sessionId = fields.get('session') ?? '';
      await people.endSession(session.person, sessionId);
      seeOther(context, '/console/sessions');
    },
  },
  {
    method: 'POST',
    path: '/console/logout',
    operation: 'logOutOfConsole',
    handle: async ({ context, token }) => {
      if (token !== undefined) await people.logOut(token);
      loggedOut(context);
    },
  },
  {
    method: 'POST',
    path: '/console/logout-everywhere',
    operation: 'logOutOfConsoleEverywhere',
    handle: async ({ context, session }) => {
      if (session) await people.endSessionsOf(session.person);
      loggedOut(context);
    },
  },
];

const giveSession = (
  context: PageRequest['context'],
  { person, csrf }: NonNullable<PageRequest['session']>,
): void => {
  context.set(HEADERS);
  context.status = 200;
  context.type = 'application/json; charset=utf-8';
  context.body = JSON.stringify({
    sessionId: person.sessionId,
    operator: person.operator,
    role: person.role,
    authenticatedAt: timestampOf(person.authenticatedAt),
    csrfToken: csrf,
  });
};

const loggedOut = (context: PageRequest['context']): void => {
  context.append('Set-Cookie', noCookie(SESSION_COOKIE));
  seeOther(context, '/console/login');
};

const sessionsBody = (rows: readonly Html[], csrf: string): Html =>
  html`<table>
      <thead>
        <tr>
          <th>Person</th>
          <th>Logged in</th>
          <th>Last used</th>
          <th>Ends</th>
          <th>By</th>
          <th>From</th>
          <th></th>
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>
    </table>
    <form method="post" action="/console/logout-everywhere">
      ${csrfField(csrf)}<button>Log out everywhere</button>
    </form>`;

const sessionRow = (session: ListedSession, own: string, csrf: string): Html =>
  html`<tr>
    <td><bdi>${session.name}</bdi> <span class="given short">${session.operator}</span></td>
    <td>${timestampOf(session.openedAt)}</td>
    <td>${timestampOf(session.seenAt)}</td>
    <td>${timestampOf(session.endsAt)}</td>
    <td>${session.method}</td>
    <td>${session.address}</td>
    <td>
      ${
        session.sessionId === own
          ? 'this one'
          : html`<form method="post" action="/console/sessions/end">
              ${csrfField(csrf)}<input
                type="hidden"
                name="session"
                value="${session.sessionId}"
              /><button>End</button>
            </form>`
      }
    </td>
  </tr> `;
