import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../src/daemon/config/config.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { silentEvents } from '../../src/actors/runtime/event-feed.ts';
import { openApprovals, type ApprovalsOfDaemon } from '../../src/daemon/assembly/approvals.ts';
import { shardOf } from '../../src/model/shards.ts';
import { MemoryDeadLetters } from '../support/fakes/memory-dead-letters.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { anEnvWorld } from '../support/harness/an-env-world.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aReceiver, anApproval, isSigned, SECRET, type Receiver } from './webhook-support.ts';

describe('the webhooks of a daemon', () => {
  let folder: string;
  let receiver: Receiver;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-webhooks-'));
    receiver = await aReceiver();
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await receiver.stop();
  });

  const opened = async (secret: string) => {
    const world = await anEnvWorld();
    const records = new MemoryApprovals();
    const secretFile = join(folder, 'secret');
    writeFileSync(secretFile, secret);
    const { config } = loadConfig({
      env: {
        HOME: folder,
        SANDPOOL_APPROVALS_WEBHOOKS: `${receiver.url} secretFile=${secretFile}`,
      },
    });
    const { clock, coordination, supervisor } = world;
    const approvals: ApprovalsOfDaemon = openApprovals(config, {
      parts: {
        clock,
        coordination,
        deadLetters: new MemoryDeadLetters(clock),
        pepper: Buffer.alloc(32, 7),
        records: { approvals: records },
      },
      log: quietLog,
      runtime: supervisor.runtime,
      metrics: silentMetrics,
      events: silentEvents,
      severalDecide: () => false,
    });
    return { approvals, participant: approvals.participant, records, clock };
  };

  it('are sent once their approval has a leader, with the secret of the file', async () => {
    const { approvals, participant, records, clock } = await opened(`${SECRET}\n`);
    await approvals.start();
    await records.create(anApproval('a', clock.now()));
    expect(approvals.webhooks?.report()[0]?.waiting).to.equal(0);

    participant.onShardAcquired(shardOf('a'));
    await eventually(() => receiver.received.length === 1, 'it is told');
    await records.create(anApproval('a2', clock.now()));
    participant.onShardAcquired(shardOf('a2'));
    await eventually(() => receiver.received.length === 2, 'so is the next');
    approvals.stop();

    expect(receiver.ids()).to.deep.equal(['a.requested', 'a2.requested']);
    expect(receiver.received.every((message) => isSigned(message))).to.equal(true);
  });

  it('need a secret of sufficient length, and the error names just its file', async () => {
    const fault = await opened('hunter2').then(
      () => '',
      (error: unknown) => String(error),
    );

    expect(fault)
      .to.include(`${join(folder, 'secret')} must have at least 16 characters`)
      .and.not.include('hunter2');
  });
});
