import { expect } from 'chai';
import { readyText, stoppedText } from '../../src/daemon/process/start-up-text.ts';

describe('the start-up message', () => {
  const startUp = {
    address: 'http://127.0.0.1:8080',
    dataDir: '/var/lib/sandpool',
    usualDataDir: true,
    command: '/opt/sandpool/bin/sandpool',
    workingDir: '/opt/sandpool',
    poolName: 'default',
    isTerminal: true,
  };

  it('shows the address, the key files and three commands to try', () => {
    const lines = readyText(startUp).split('\n');

    expect(lines).to.include('Sandpool is ready at http://127.0.0.1:8080');
    expect(lines).to.include(
      'Keys: /var/lib/sandpool/keys/tenant.key (tenant), /var/lib/sandpool/keys/admin.key (admin)',
    );
    expect(lines).to.include.members([
      '  ./bin/sandpool run -- uname -a',
      `  curl -H "SERVICE-API-KEY: $(cat /var/lib/sandpool/keys/tenant.key)" -H 'content-type: application/json' -d '{"poolName":"default"}' http://127.0.0.1:8080/sandboxes`,
      '  ./bin/sandpool shell',
    ]);
  });

  it('shows a link to the console only at the first start, and only on a terminal', () => {
    const consoleLink = 'http://127.0.0.1:8080/console/link?token=x';

    expect(readyText(startUp)).to.not.contain('onsole');
    expect(readyText({ ...startUp, consoleLink }).split('\n')).to.include(
      `Console, once and within five minutes: ${consoleLink}`,
    );
    const text = readyText({ ...startUp, consoleLink, isTerminal: false });
    expect(text).to.not.contain('/console');
    expect(text.split('\n')).to.include(
      'A link to the console, for one browser: ./bin/sandpool console login',
    );
  });

  it('shows commands that work unchanged, elsewhere and with another data folder too', () => {
    const text = readyText({
      ...startUp,
      workingDir: '/home/me',
      dataDir: '/tmp/my data',
      usualDataDir: false,
    });

    expect(text).to.include(
      `  SANDPOOL_DATA_DIR='/tmp/my data' /opt/sandpool/bin/sandpool run -- uname -a`,
    );
    expect(text).to.include(`$(cat '/tmp/my data/keys/tenant.key')`);
  });

  it('shows at the end how many sandboxes are left, and how to end them', () => {
    expect(stoppedText(0, startUp)).to.equal('Sandpool has stopped; no sandbox is left.\n');
    expect(stoppedText(1, startUp))
      .to.include('1 sandbox is left')
      .and.include('./bin/sandpool stop --all');
    expect(stoppedText(4, startUp)).to.include('4 sandboxes are left');
  });
});
