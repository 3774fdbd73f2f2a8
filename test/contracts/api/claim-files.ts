import { expect } from 'chai';
import { aName, aTemplateOf, Clients, type RunningService } from './running-service.ts';
import { aTenantOf, type Tenant } from './belongings.ts';
import { eventually } from '../../support/harness/eventually.ts';
import type { HttpAnswer } from '../../support/harness/http-client.ts';
import { untilAnswered } from '../../support/harness/until-answered.ts';

/** The files that a claim brings, wherever the next request arrives. */
export const claimFilesSuite = (name: string, service: () => RunningService): void => {
  describe(`files of a claim: ${name}`, function () {
    const clients = new Clients(service);
    const pool = aName('brought');
    /** On a simulated node a folder of this machine. */
    const folder = `/tmp/${pool}`;
    let tenant: Tenant;

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'brought');
      await untilAnswered(201, () =>
        tenant.ask().post('/sandboxpools', {
          name: pool,
          replicas: 3,
          template: aTemplateOf(service()),
        }),
      );
    });
    after(async () => {
      const { json } = await tenant.ask().get(`/sandboxes?poolName=${pool}&phase=Running`);
      for (const { sandboxId } of json.items ?? [])
        await tenant
          .ask()
          .delete(`/sandboxes/${String(sandboxId)}/files?path=${folder}&recursive=true`);
      clients.close();
    });

    const claimed = async (
      files: readonly object[],
      headers: Readonly<Record<string, string>> = {},
    ): Promise<HttpAnswer> => {
      let answer: HttpAnswer | undefined;
      await eventually(async () => {
        const body = { poolName: pool, files };
        answer = await tenant.ask().post('/sandboxes', body, { headers });
        return answer.json.errorCode !== 'POOL_EXHAUSTED';
      }, 'an instance is idle');
      return answer!; // it was answered
    };
    const idOf = ({ json }: HttpAnswer): string => String(json.sandbox?.['sandboxId']);
    const read = async (id: string, path: string): Promise<HttpAnswer> =>
      await untilAnswered(200, () =>
        tenant.ask().get(`/sandboxes/${id}/files?path=${encodeURIComponent(path)}`),
      );
    const used = async (): Promise<unknown> => {
      const { json } = await untilAnswered(200, () => tenant.ask().get('/quotas'));
      const quota = json.items?.find(({ resource }) => resource === 'sandboxes');
      expect(quota, 'the sandboxes of the user are counted').to.have.property('used');
      return quota?.['used'];
    };

    it('exist with their folders and modes when the claim is answered, and are shown nowhere', async () => {
      const answer = await claimed([
        { path: `${folder}/deep/er/text`, content: 'canary-text ä\n' },
        {
          path: `${folder}/bytes`,
          content: Buffer.from([0, 255, 10]).toString('base64'),
          encoding: 'base64',
        },
        { path: `${folder}/run`, content: '#!/bin/sh\necho canary-run\n', mode: '0755' },
        { path: `${folder}/empty`, content: '' },
      ]);
      expect(answer.status, answer.text).to.equal(201);
      const id = idOf(answer);
      const { text } = await untilAnswered(200, () =>
        tenant.ask().post(`/sandboxes/${id}/exec`, { command: [`${folder}/run`] }),
      );

      expect(JSON.parse(text)).to.include({ stdout: 'canary-run\n', exitCode: 0 });
      expect((await read(id, `${folder}/deep/er/text`)).text).to.equal('canary-text ä\n');
      expect((await read(id, `${folder}/bytes`)).headers['content-length']).to.equal('3');
      expect((await read(id, `${folder}/run`)).headers['x-file-mode']).to.equal('0755');
      expect((await read(id, `${folder}/empty`)).headers['x-file-mode']).to.equal('0644');
      const shown = await tenant.ask().get(`/sandboxes/${id}`);
      const looked = await clients.admin.get(`/debug/actors/sandbox/${id}`);
      const stranger = await aTenantOf(service(), clients, 'stranger');
      const theirs = await stranger.ask().get(`/sandboxes/${id}/files?path=${folder}/run`);
      expect(answer.text + shown.text + looked.text).to.not.include('canary');
      expect(theirs.status).to.equal(404);
    });

    it('that cannot be written return the instance and its quota', async () => {
      const before = await used();
      const answer = await claimed([
        { path: `${folder}/good`, content: 'x' },
        { path: '/bin/sh/beneath', content: 'canary' },
      ]);

      expect([answer.status, answer.json.errorCode], answer.text).to.deep.equal([409, 'CONFLICT']);
      expect(answer.json.detail).to.deep.equal({
        field: 'files[1].path',
        hint: 'the claim was undone',
      });
      expect(answer.text).to.not.include('canary');
      await eventually(
        async () => (await used()) === before,
        'its seat in the quota is given back',
      );
      await eventually(async () => {
        const { json } = await tenant.ask().get(`/sandboxes?poolName=${pool}&phase=Completed`);
        return json.items?.[0]?.['endReason'] === 'claim-failed';
      }, 'it has ended, and says why');
    });

    it('are the same for a repetition with the same key, and other files are refused', async () => {
      const headers = { 'Idempotency-Key': aName('key') };
      const files = [{ path: `${folder}/keyed`, content: 'canary-keyed' }];
      const first = await claimed(files, headers);
      const again = await claimed(files, headers);
      const other = await claimed([{ path: `${folder}/keyed`, content: 'other' }], headers);

      expect([first.status, again.status]).to.deep.equal([201, 201]);
      expect(idOf(again)).to.equal(idOf(first));
      expect(other.json.errorCode).to.equal('IDEMPOTENCY_KEY_REUSED');
      expect((await read(idOf(first), `${folder}/keyed`)).text).to.equal('canary-keyed');
    });

    it('that failed release their key', async () => {
      const headers = { 'Idempotency-Key': aName('key') };
      const files = [{ path: '/bin/sh/beneath', content: 'x' }];
      const first = await claimed(files, headers);
      let again: HttpAnswer | undefined;
      await eventually(
        async () =>
          (again = await claimed(files, headers)).json.errorCode !== 'IDEMPOTENCY_IN_FLIGHT',
        'the first is over',
      );

      expect([first.status, again?.status]).to.deep.equal([409, 409]);
      expect(again?.json.detail).to.deep.equal(first.json.detail);
    });
  });
};
