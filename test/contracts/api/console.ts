import { expect } from 'chai';
import { commandDaemon } from '../../../src/cli/common/control.ts';
import type { HttpAnswer, HttpClient } from '../../support/harness/http-client.ts';
import { clientOf } from '../../support/harness/patient-client.ts';
import type { RunningService } from './running-service.ts';

/** People at the console: what holds wherever the daemons run, and whichever of them is asked. */
export const consoleSuite = (name: string, service: () => RunningService): void => {
  describe(`the console: ${name}`, () => {
    const clients: HttpClient[] = [];
    afterEach(() => {
      for (const client of clients.splice(0)) client.close();
    });

    /** Sends the same to each daemon in turn, from the console's own origin there. */
    const onEach = async (
      send: (client: HttpClient, origin: string) => Promise<HttpAnswer>,
    ): Promise<readonly number[]> => {
      const statuses: number[] = [];
      for (const port of service().ports) {
        const client = new (clientOf(service()))(port);
        clients.push(client);
        statuses.push((await send(client, `http://127.0.0.1:${port}`)).status);
      }
      return statuses;
    };
    const form = (
      fields: Readonly<Record<string, string>>,
      headers: Readonly<Record<string, string>>,
    ) => ({
      raw: new URLSearchParams(fields).toString(),
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    });

    it("admits the holder of a link from the data folder's owner, once, until they log out", async () => {
      const { url } = await commandDaemon(service().dataDirs[0] ?? '', '/console/login', {});
      const token = new URL(String(url)).searchParams.get('token') ?? '';
      let cookie = '';
      const entered = await onEach(async (client, Origin) => {
        const answer = await client.post('/console/link', undefined, form({ token }, { Origin }));
        cookie ||= (answer.headers['set-cookie'] ?? '').split(';')[0] ?? '';
        return answer;
      });
      const headers = { Cookie: cookie };
      let csrf = '';
      const seen = await onEach(async (client) => {
        const answer = await client.get('/console/session', { headers });
        csrf = String(Object(answer.json)['csrfToken']);
        return answer;
      });
      const lists = await onEach((client) => client.get('/console/approvals', { headers }));
      const overRest = await onEach((client) => client.get('/approvals', { headers }));
      const withKey = await onEach((client) =>
        client.get('/approvals', { headers, key: service().adminKey }),
      );
      const left = await onEach((client, Origin) =>
        client.post('/console/logout', undefined, form({ csrf }, { Origin, ...headers })),
      );
      const after = await onEach((client) => client.get('/approvals', { headers }));

      const every = (status: number) => service().ports.map(() => status);
      expect(entered).to.deep.equal(every(403).with(0, 200));
      expect(seen).to.deep.equal(every(200));
      expect(lists).to.deep.equal(every(200));
      expect(overRest).to.deep.equal(every(200));
      expect(withKey).to.deep.equal(every(400));
      expect(left).to.deep.equal(every(303));
      expect(after).to.deep.equal(every(401));
    });
  });
};
