import { commandDaemon } from '../../../src/cli/common/control.ts';
import type { DaemonUnderTest } from './a-daemon.ts';
import { HttpClient, type HttpAnswer } from './http-client.ts';

/** Logged in at a daemon's console by a link. */
export interface PersonAtConsole {
  /** Cookie, Origin and CSRF token for writes. */
  readonly headers: Readonly<Record<string, string>>;
  /** Used up. */
  readonly link: string;
  readonly decide: (
    id: string,
    body: object,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<HttpAnswer>;
  readonly approve: (id: string) => Promise<HttpAnswer>;
}

type RunningDaemon = Pick<DaemonUnderTest, 'dataDir'> & {
  readonly run: Pick<DaemonUnderTest['run'], 'port'>;
};

/** Sends the form of a link's page. */
export const useLink = (client: HttpClient, port: number, token: string): Promise<HttpAnswer> =>
  client.post('/console/link', undefined, {
    raw: new URLSearchParams({ token }).toString(),
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      Origin: `http://127.0.0.1:${port}`,
    },
  });

/** As the owner of the data folder, or the named operator. */
export const atConsole = async (
  { dataDir, run: { port } }: RunningDaemon,
  client: HttpClient,
  as?: string,
): Promise<PersonAtConsole> => {
  const { url } = await commandDaemon(dataDir, '/console/login', { as });
  const link = new URL(String(url)).searchParams.get('token') ?? '';
  const entered = await useLink(client, port, link);
  const cookie = { Cookie: (entered.headers['set-cookie'] ?? '').split(';')[0] ?? '' };
  const { json } = await client.get('/console/session', { headers: cookie });
  const headers = {
    ...cookie,
    Origin: `http://127.0.0.1:${port}`,
    'X-CSRF-Token': String(Object(json)['csrfToken']),
  };
  const decide: PersonAtConsole['decide'] = (id, body, more = {}) =>
    client.post(`/approvals/${id}/decision`, body, { headers: { ...headers, ...more } });
  return { headers, link, decide, approve: (id) => decide(id, { decision: 'approve' }) };
};
