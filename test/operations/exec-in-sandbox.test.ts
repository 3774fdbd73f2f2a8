import { expect } from 'chai';
import { ContainerGone, InstanceGone } from '../../src/contracts/sandbox-driver.ts';
import { errorAnswer } from '../../src/http/reply/error-table.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import { getSandbox } from '../../src/actors/sandbox/commands/get-sandbox.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const REQUEST = { argv: ['true'], timeoutMs: 1_000, outputLimit: 10 };

describe('a command in a running sandbox', () => {
  const running = async () => {
    const world = await aSupervisor({ pool: { replicas: 1 } });
    await eventually(
      () => world.supervisor.pools.get(world.pool.uid)?.counts.idle === 1,
      'one is idle',
    );
    const { id } = await world.claim(alice, { poolName: 'default' });
    const exec = (named: object = { container: 'main' }) =>
      execInSandbox(world)(alice, id, {
        request: { ...REQUEST, ...named },
        signal: new AbortController().signal,
      });
    return { ...world, id, exec };
  };
  const answered = async (call: Promise<unknown>) => errorAnswer(await rejection(call), 'r');

  it('is refused with 409 by container name if that container has ended, as the sandbox shows', async () => {
    const { driver, supervisor, clock, id, exec } = await running();
    driver.loseContainer(id, 'main', 'exit code 3');
    driver.failNext('exec', new ContainerGone('it has ended'));
    expect(await answered(exec())).to.deep.include({
      status: 409,
      body: {
        error: 'the container "main" of the sandbox has ended, and does not restart',
        errorCode: 'SANDBOX_NOT_RUNNING',
      },
    });
    await driver.settled();
    const shown = await getSandbox({ supervisor, clock, endpointMode: 'gateway' })(alice, id);
    expect(shown).to.deep.include({ status: 'Running', endedContainers: { main: 'exit code 3' } });
  });

  it('is refused with 409 if it names no container and none is running', async () => {
    const { driver, exec } = await running();
    driver.failNext('exec', new ContainerGone('it has ended'));
    expect((await answered(exec({}))).body).to.include({
      error: 'a container of the sandbox has ended, and does not restart',
    });
  });

  it('is refused with 404 if the sandbox ends in the meantime', async () => {
    const { driver, exec } = await running();
    driver.failNext('exec', new InstanceGone('it is gone'));
    expect(await answered(exec())).to.include({ status: 404 });
  });
});
