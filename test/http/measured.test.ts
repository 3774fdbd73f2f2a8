import { expect } from 'chai';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { aServer } from './a-server.ts';

describe('how requests are counted', () => {
  it('by the template of their route: a HEAD as the GET that it is, a path that there is not as none', async () => {
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
