import { expect } from 'chai';
import { aName, aTemplateOf, Clients, type RunningService } from './running-service.ts';
import { aTenantOf, type Tenant } from './belongings.ts';
import { eventually } from '../../support/harness/eventually.ts';
import type { HttpAnswer } from '../../support/harness/http-client.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';

/** What a claim says beside its pool, wherever the next request arrives. */
export const claimTermsSuite = (name: string, service: () => RunningService): void => {
  describe(`claims with variables and metadata: ${name}`, function () {
    const clients = new Clients(service);
    const pool = aName('described');
    const job = aName('job');
    let tenant: Tenant;

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'described');
      await untilAnswered(201, () =>
        tenant.ask().post('/sandboxpools', {
          name: pool,
          replicas: 5,
          template: aTemplateOf(service()),
        }),
      );
    });
    after(() => {
      clients.close();
    });

    const claimed = async (part: object): Promise<HttpAnswer> => {
      let answer: HttpAnswer | undefined;
      await eventually(
        async () =>
          (answer = await tenant.ask().post('/sandboxes', { poolName: pool, ...part })).status !==
          429,
        'an instance is idle',
      );
      return answer!; // it was answered
    };
    const idOf = ({ json }: HttpAnswer): string => String(json.sandbox?.['sandboxId']);
    const printed = async (id: string, command: string, env?: object): Promise<string> => {
      const { text } = await untilAnswered(200, () =>
        tenant.ask().post(`/sandboxes/${id}/exec`, { command, env }),
      );
      return (JSON.parse(text) as { readonly stdout: string }).stdout;
    };
    const found = async (query: string): Promise<readonly string[]> => {
      const { json } = await untilAnswered(200, () => tenant.ask().get(`/sandboxes?${query}`));
      return (json.items ?? []).map((item) => String(item['sandboxId'])).toSorted();
    };

    it('pass variables on to commands, whose own come first, and show none of them', async () => {
      const env = { ONE: 'canary-one', TWO: 'canary-two\n "$x" ä', LD_PRELOAD: '' };
      const answer = await claimed({ env, metadata: { job } });
      const id = idOf(answer);

      expect(answer.status, answer.text).to.equal(201);
      expect(await printed(id, 'printf "%s|%s" "$ONE" "$TWO"')).to.equal(`${env.ONE}|${env.TWO}`);
      expect(await printed(id, 'printf "%s|%s" "$ONE" "$TWO"', { ONE: 'its own' })).to.equal(
        `its own|${env.TWO}`,
      );
      await tenant.ask().put(`/sandboxes/${id}/idle-timeout`, { idleTimeout: '7m' });
      expect(await printed(id, 'printf "%s" "$ONE"'), 'after a change of the record').to.equal(
        env.ONE,
      );
      const shown = await tenant.ask().get(`/sandboxes/${id}`);
      const looked = await clients.admin.get(`/debug/actors/sandbox/${id}`);
      expect(answer.text + shown.text + looked.text).to.not.include('canary');
      expect(shown.json.sandbox?.['metadata']).to.deep.equal({ job });
    });

    it('are found by all pairs of their metadata, and only by their owner', async () => {
      const id = idOf(await claimed({ metadata: { job: `${job}-2`, stage: 'a' } }));
      const stranger = await aTenantOf(service(), clients, 'stranger');

      await eventually(async () => {
        for (const _ of service().ports)
          if ((await found(`metadata.job=${job}-2`)).join() !== id) return false;
        return true;
      }, 'each replica finds it');
      expect(await found(`metadata.job=${job}-2&metadata.stage=a&poolName=${pool}`)).to.deep.equal([
        id,
      ]);
      expect(await found(`metadata.job=${job}-2&metadata.stage=b`)).to.deep.equal([]);
      const theirs = await stranger.ask().get(`/sandboxes?metadata.job=${job}-2`);
      expect([theirs.status, theirs.json.total]).to.deep.equal([200, 0]);
      const all = await clients.admin.get(`/sandboxes?all&metadata.job=${job}-2`);
      expect(all.json.total).to.equal(1);
    });

    it('pause until a call resumes them, or get 501 if the feature is off', async () => {
      const [sleeper, waker] = [
        idOf(await claimed({ metadata: { job } })),
        idOf(await claimed({ autoResume: true })),
      ];
      const gates = JSON.parse((await tenant.ask().get('/feature-gates')).text) as {
        readonly pause: boolean;
      };
      const setState = (id: string, state: unknown) =>
        tenant.ask().put(`/sandboxes/${id}/state`, { state });
      expect((await setState(sleeper, 'asleep')).json.detail?.['field']).to.equal('state');
      expect((await setState(sleeper, 'running')).status, 'as it is').to.equal(200);
      const paused = await setState(sleeper, 'paused');
      if (!gates.pause) {
        expect([paused.status, paused.json.errorCode]).to.deep.equal([501, 'FEATURE_DISABLED']);
        return;
      }
      expect([paused.status, paused.json.sandbox?.['paused']]).to.deep.equal([200, true]);
      expect((await setState(waker, 'paused')).status).to.equal(200);
      const [listed] = JSON.parse(
        (await tenant.ask().get(`/sandboxes?metadata.job=${job}&phase=Running`)).text,
      ).items as readonly { readonly paused?: boolean; readonly status: string }[];
      expect(listed).to.deep.include({ status: 'Running', paused: true });
      for (const [method, path, body] of [
        ['POST', 'exec', { command: 'true' }],
        ['POST', 'exec-token', undefined],
        ['GET', 'endpoints/web/', undefined],
      ] as const) {
        const path_ = `/sandboxes/${sleeper}/${path}`;
        const { status, json } = await tenant.ask().send(method, path_, body ? { body } : {});
        expect([status, json.errorCode], path).to.deep.equal([409, 'SANDBOX_NOT_RUNNING']);
        expect(json.detail?.['hint'], path).to.include('autoResume');
      }
      expect(await printed(waker, 'echo awake')).to.equal('awake\n');
      expect((await tenant.ask().get(`/sandboxes/${waker}`)).json.sandbox).to.not.have.property(
        'paused',
      );
      expect((await tenant.ask().delete(`/sandboxes/${sleeper}`)).status).to.equal(200);
      await eventually(
        async () => (await setState(sleeper, 'running')).status === 404,
        'a paused one is gone once it is deleted',
      );
    });

    it('are the same for a repetition with the same key, and other options are refused', async () => {
      const headers = { 'Idempotency-Key': aName('key') };
      const body = { poolName: pool, env: { A: 'canary-1' }, metadata: { job: `${job}-3` } };
      let first: HttpAnswer | undefined;
      await eventually(
        async () =>
          (first = await tenant.ask().post('/sandboxes', body, { headers })).status === 201,
        'it is claimed',
      );
      const again = await tenant.ask().post('/sandboxes', body, { headers });

      expect([again.status, idOf(again)]).to.deep.equal([201, idOf(first!)]); // it was answered
      for (const other of [{ env: { A: 'canary-2' } }, { metadata: { job: 'other' } }]) {
        const refused = await tenant.ask().post('/sandboxes', { ...body, ...other }, { headers });
        expect([refused.status, refused.json.errorCode]).to.deep.equal([
          422,
          'IDEMPOTENCY_KEY_REUSED',
        ]);
      }
    });
  });
};
