import { expect } from 'chai';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { aServer } from './a-server.ts';

describe('requests are counted', () => {
  it('by route template, with HEAD as GET, and unknown paths together', async () => {
    const counted: unknown[] = [];
    const server = await aServer({
      metrics: {
        ...silentMetrics,
        count: (name, labels) => {
          if (name === 'sandpool_http_requests_total') counted.push(labels);
        },
      },
    });
    await server.tenant.send('HEAD', '/sandboxpools/some');
    await server.tenant.send('GET', '/sandboxpools/some');
    await server.tenant.send('PUT', '/made/up');
    await server.stop();

    const one = { method: 'GET', route: '/sandboxpools/{name}', status: '404' };
    expect(counted).to.deep.equal([one, one, { method: 'other', route: 'none', status: '404' }]);
  });
});
