import { expect } from 'chai';
import { heldSubject } from '../../src/http/router/held-subject.ts';
import { approvalParts } from '../../src/operations/approvals/approval-parts.ts';
import { aSession, rulesOf, TERMS } from '../http/an-approving-server.ts';
import { FakeOperations } from '../support/fakes/fake-operations.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aCompatibleApi } from './a-compatible-api.ts';

describe('a sandbox that a rule has wait for a person, at the compatible API', () => {
  it('is not made before that, and once when it is asked for again', async () => {
    const operations = new FakeOperations();
    const records = new MemoryApprovals();
    const parts = approvalParts({
      approvals: records,
      clock: new TestClock(),
      log: quietLog,
      pepper: Buffer.alloc(32, 7),
      rules: rulesOf('require operation=claimSandbox key=gated'),
      terms: TERMS,
      severalDecide: () => true,
    });
    await parts.mirror.start();
    Object.assign(operations, parts.operations);
    const { gate } = parts;
    const gating = { gate, subjectOf: heldSubject(operations) };
    const api = await aCompatibleApi({ operations, gating, gate });
    const caller = operations.authenticate(api.keys.tenant);
    const { apiKey } = await operations.createApiKey(caller, {
      ...{ shortName: 'agent', description: '', gated: true },
    });
    const create = async (key: string) => {
      const answer = await fetch(`${api.url}/sandboxes`, {
        method: 'POST',
        headers: { 'X-API-KEY': key, 'Content-Type': 'application/json' },
        body: JSON.stringify({ templateID: 'base', timeout: 60 }),
      });
      const body = (await answer.json()) as Readonly<Record<string, unknown>>;
      return { status: answer.status, body };
    };
    try {
      const held = await create(apiKey);
      const [id = ''] = records.records.keys();
      expect(held).to.deep.equal({
        status: 403,
        body: {
          code: 403,
          message: `a person must approve this request first (approval ${id})`,
        },
      });
      expect((await create(apiKey)).body).to.deep.equal(held.body);
      expect(operations.sandboxes.size).to.equal(0);

      await parts.operations.decideApproval(aSession(), id, { decision: 'approve', scope: 'once' });
      const made = await create(apiKey);
      const again = await create(apiKey);

      expect([made.status, again]).to.deep.equal([201, made]);
      expect(operations.sandboxes.size).to.equal(1);
      expect(records.records.size).to.equal(1);
      // A key that is not gated waits for nobody.
      expect((await create(api.keys.tenant)).status).to.equal(201);
    } finally {
      await api.stop();
    }
  });
});
