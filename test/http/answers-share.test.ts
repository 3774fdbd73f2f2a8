import { expect } from 'chai';
import { aPool } from '../support/builders/a-pool.ts';
import { eventually } from '../support/harness/eventually.ts';
import { EventReader } from '../support/harness/event-reader.ts';
import type { HttpAnswer } from '../support/harness/http-client.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { AnswerBudget } from '../../src/actors/sandbox/commands/answer-budget.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const MIB = 2 ** 20;
const MOST = 64 * MIB;
const ADA = 'team-blue/blue/ada';
/** An answer with it is long enough to be counted. */
const LONG = 'x'.repeat(300);
const annotations = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`a${n}`, LONG]));

describe('a tenant that has used up its memory for answers', () => {
  /** A server whose tenant `ada` has all of her share but so many bytes. */
  const almostUsed = async (leftBytes: number) => {
    const operations = anEngine();
    const budget = new AnswerBudget({ metrics: silentMetrics, mostBytes: MOST, tenantPercent: 50 });
    const server = await aServer({ operations, answers: budget });
    const ids: string[] = [];
    for (const client of [server.tenant, server.stranger]) {
      await client.post('/sandboxpools', { name: 'p', templateName: 'default', annotations });
      const { json } = await client.post('/sandboxes', { poolName: 'p' });
      ids.push(json.sandbox!.sandboxId!);
    }
    const [id = '', foreign = ''] = ids;
    operations.driver.logged.print(id, 'words\n');
    operations.driver.logged.print(foreign, 'words\n');
    const held = budget.room(ADA);
    held.hold(MOST / 2 - leftBytes);
    return { server, operations, budget, held, id, foreign };
  };
  const expectRefused = ({ status, headers, json }: HttpAnswer): void => {
    expect([status, json.errorCode]).to.deep.equal([429, 'RATE_LIMITED']);
    expect(Number(headers['retry-after'])).to.be.at.least(1);
  };

  it('cannot read logs, which others can', async () => {
    const { server, held, id, foreign } = await almostUsed(MIB);

    expectRefused(await server.tenant.get(`/sandboxes/${id}/logs`));
    expectRefused(await server.tenant.get(`/sandboxes/${id}/logs?follow=true`));
    expect((await server.stranger.get(`/sandboxes/${foreign}/logs`)).json).to.include({
      logs: 'words\n',
    });
    held.release();
    expect((await server.tenant.get(`/sandboxes/${id}/logs`)).json).to.include({ logs: 'words\n' });
    await server.stop();
  });

  it('is refused a command before the command runs', async () => {
    const { server, operations, held, id } = await almostUsed(1_024);
    let ran = 0;
    operations.driver.onExec = async () => {
      ran += 1;
      return {};
    };
    const command = { command: 'true' };

    expectRefused(await server.tenant.post(`/sandboxes/${id}/exec`, command));
    expect(ran).to.equal(0);
    held.release();
    expect((await server.tenant.post(`/sandboxes/${id}/exec`, command)).status).to.equal(200);
    expect(ran).to.equal(1);
    await server.stop();
  });

  it('gets memory back once the first lines of a followed log are sent', async () => {
    const { server, budget, held, id } = await almostUsed(8 * MIB);
    const isFree = (): boolean => {
      const room = budget.room(ADA);
      try {
        room.hold(8 * MIB);
        return true;
      } catch {
        return false;
      } finally {
        room.release();
      }
    };
    expect(isFree()).to.equal(true);
    const reader = await EventReader.open(server.port, `/sandboxes/${id}/logs?follow=true`, {
      'SERVICE-API-KEY': server.tenant.key ?? '',
    });
    reader.read();
    await eventually(() => reader.text.includes('words'), 'the first lines');
    server.operations.driver.logged.print(id, 'more\n');
    await eventually(() => reader.text.includes('more'), 'it is followed');

    expect(isFree()).to.equal(true);
    reader.close();
    held.release();
    await server.stop();
  });

  it('is refused long lists, which others can read, but not short ones', async () => {
    const { server } = await almostUsed(1_024);

    expectRefused(await server.tenant.get('/sandboxpools'));
    expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    expect((await server.stranger.get('/sandboxpools')).status).to.equal(200);
    await server.stop();
  });

  it('gets the answer of a completed change, however long the answer is', async () => {
    const { server } = await almostUsed(1_024);
    const made = { name: 'q', templateName: 'default', annotations };

    expect((await server.tenant.post('/sandboxpools', made)).status).to.equal(201);
    await server.stop();
  });

  it("is refused long previews of a pool's sync", async () => {
    const { server, operations, held } = await almostUsed(1_024);
    const args = Array.from({ length: 200 }, () => LONG);
    Object.assign(operations, {
      previewPoolSync: async () => ({
        record: aPool({ name: 'p' }),
        spec: { containers: [{ name: 'main', image: 'busybox', args }] },
        version: 'v1',
      }),
    });
    const preview = '/sandboxpools/p/sync-template/preview';

    expectRefused(await server.tenant.post(preview));
    expect((await server.stranger.post(preview)).status).to.equal(200);
    held.release();
    expect((await server.tenant.post(preview)).status).to.equal(200);
    await server.stop();
  });
});
