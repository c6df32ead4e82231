# Memoranda's server with every extra that needs no other service's client but PostgreSQL's.
FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN python -m venv /opt/memoranda \
    && /opt/memoranda/bin/pip install --no-cache-dir ./packages/memoranda-models '.[all,postgres]'

FROM python:3.13-slim-bookworm
RUN groupadd --system --gid 10001 memoranda \
    && useradd --system --uid 10001 --gid memoranda --home-dir /data --shell /usr/sbin/nologin memoranda \
    && install -d -o memoranda -g memoranda -m 0700 /data
COPY --from=build /opt/memoranda /opt/memoranda
ENV PATH=/opt/memoranda/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    MEMORANDA_DATA=/data \
    MEMORANDA_SERVER__HOST=0.0.0.0 \
    MEMORANDA_SERVER__REQUIRE_KEYS=true
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8377
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8377/healthz', timeout=4)"]
ENTRYPOINT ["memoranda"]
CMD ["serve"]
